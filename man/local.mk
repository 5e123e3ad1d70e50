# One page a family of functions, a program or a concept. A page's NAME section lists all it describes, and each of these names
# becomes a page of its own at installation, which refers to the first.
dist_man_MANS += \
    man/ncclx-info.1 man/ncclx-perf.1 man/ncclxcc.1 man/ncclxrun.1 \
    man/ncclx_coll_allgather.3 man/ncclx_coll_allreduce.3 man/ncclx_coll_alltoall.3 man/ncclx_coll_barrier.3 \
    man/ncclx_coll_bcast.3 man/ncclx_coll_gather.3 man/ncclx_coll_reduce.3 man/ncclx_coll_reduce_scatter.3 \
    man/ncclx_coll_scan.3 man/ncclx_coll_scatter.3 man/ncclx_comm.3 man/ncclx_comm_dup.3 man/ncclx_errhandler.3 \
    man/ncclx_error.3 man/ncclx_group.3 man/ncclx_info.3 man/ncclx_init.3 man/ncclx_mem.3 man/ncclx_op.3 \
    man/ncclx_probe.3 man/ncclx_send.3 man/ncclx_start.3 man/ncclx_type.3 man/ncclx_version.3 man/ncclx_wait.3 \
    man/ncclx_win_accumulate.3 man/ncclx_win_create.3 man/ncclx_win_fence.3 man/ncclx_win_lock.3 man/ncclx_win_plan.3 man/ncclx_win_post.3 \
    man/ncclx_win_put.3 man/ncclx_win_shared_query.3 man/ncclx_win_signal.3 man/ncclx_wtime.3 \
    man/ncclx.7 man/ncclx_coll.7 man/ncclx_env.7 man/ncclx_startup.7 man/ncclx_win.7

# Prints "SECTION PAGE NAME" for each further name of each page.
man_aliases = for page in $(dist_man_MANS); do \
      file=$${page\#\#*/}; title=$${file%.*}; section=$${file\#\#*.}; \
      sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \([^ ]*\).*/\1/p' $(srcdir)/$$page | while read -r name; do \
        test "$$name" = "$$title" || echo "$$section $$file $$name"; done; done
install-data-hook:
	@$(man_aliases) | while read -r section file name; do \
	  echo ".so man$$section/$$file" >$(DESTDIR)$(mandir)/man$$section/$$name.$$section || exit 1; done
uninstall-hook:
	@$(man_aliases) | while read -r section file name; do rm -f $(DESTDIR)$(mandir)/man$$section/$$name.$$section; done
