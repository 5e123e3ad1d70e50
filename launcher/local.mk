# launcher
#
# What has no side effects is a library of its own: the unit tests and fuzzers link it.
tree_sources = \
	launcher/tree.c \
	launcher/tree_batch.c \
	launcher/tree_end.c \
	launcher/tree_loss.c \
	launcher/tree_nodes.c \
	launcher/tree_shape.c \
	launcher/tree_start.c \
	launcher/tree_text.c \
	launcher/tree_wire.c
noinst_LTLIBRARIES += launcher/liblauncher.la
launcher_liblauncher_la_SOURCES = \
	launcher/blame.c launcher/blame.h \
	launcher/display.c launcher/display.h \
	launcher/environment.c launcher/environment.h \
	launcher/frame.c launcher/frame.h \
	launcher/gpus.c launcher/gpus.h \
	launcher/hostfile.c launcher/hostfile.h \
	launcher/hosts.c launcher/hosts.h \
	launcher/hosts_identity.c \
	launcher/jobs.c launcher/jobs.h \
	launcher/map.c launcher/map.h \
	launcher/message.c launcher/message.h \
	launcher/message_gpus.c launcher/message_gpus.h \
	launcher/options.c launcher/options.h \
	launcher/order.c launcher/order.h \
	launcher/progress.c launcher/progress.h \
	launcher/report.c launcher/report.h \
	launcher/spawn.c launcher/spawn.h \
	launcher/tree.h launcher/tree_private.h \
	launcher/words.c launcher/words.h \
	$(tree_sources)
launcher_liblauncher_la_LIBADD = libncclx_core.la

# What ncclxrun and ncclxd share: places in the tree of daemons.
wiring_sources = \
	launcher/agent.c launcher/agent.h \
	launcher/child.c launcher/child.h \
	launcher/link.c launcher/link.h \
	launcher/pulse.c launcher/pulse.h \
	launcher/starter.c launcher/starter.h \
	launcher/wiring.c launcher/wiring.h

# ncclxrun needs neither PMIx nor hwloc: --as-needed keeps them from being loaded at each start.
bin_PROGRAMS += launcher/ncclxrun
launcher_ncclxrun_SOURCES = $(wiring_sources) \
	launcher/front.c launcher/front.h \
	launcher/front_daemon.c \
	launcher/front_dry.c \
	launcher/front_frames.c \
	launcher/front_hosts.c \
	launcher/front_jobs.c \
	launcher/front_map.c \
	launcher/front_mpir.c launcher/front_mpir.h \
	launcher/front_progress.c launcher/front_progress.h \
	launcher/front_launch.c \
	launcher/front_signals.c \
	launcher/front_spawn.c \
	launcher/front_tree.c \
	launcher/host_lookup.c launcher/host_lookup.h \
	launcher/input.c launcher/input.h \
	launcher/ncclxrun.c \
	launcher/output.c launcher/output.h \
	launcher/scratch.c launcher/scratch.h \
	launcher/sweep.c launcher/sweep.h
launcher_ncclxrun_CPPFLAGS = $(AM_CPPFLAGS) -DLIBEXECDIR='"$(libexecdir)"'
launcher_ncclxrun_LDFLAGS = $(AM_LDFLAGS) -Wl,--as-needed
launcher_ncclxrun_LDADD = launcher/liblauncher.la $(EVENT_LIBS)

server_sources = \
	launcher/server.c \
	launcher/server_exchange.c \
	launcher/server_job.c \
	launcher/server_jobs.c \
	launcher/server_modex.c \
	launcher/server_names.c \
	launcher/server_notices.c \
	launcher/server_spawn.c \
	launcher/server_upcalls.c
libexec_PROGRAMS += launcher/ncclxd
launcher_ncclxd_SOURCES = $(wiring_sources) \
	launcher/child_pool.c launcher/child_pool.h \
	launcher/cpus.c launcher/cpus.h \
	launcher/daemon.c launcher/daemon.h \
	launcher/daemon_end.c \
	launcher/daemon_frames.c \
	launcher/daemon_job.c \
	launcher/daemon_start.c \
	launcher/daemon_streams.c \
	launcher/daemon_where.c \
	launcher/dying.c launcher/dying.h \
	launcher/gpus_discover.c \
	launcher/ncclxd.c \
	launcher/ncclxd_describe.c \
	launcher/scratch.c launcher/scratch.h \
	launcher/server.h launcher/server_calls.h launcher/server_private.h $(server_sources) \
	launcher/sweep.c launcher/sweep.h
launcher_ncclxd_LDADD = launcher/liblauncher.la bootstrap/libkvx.la $(EVENT_LIBS) $(PMIX_LIBS) $(HWLOC_LIBS)
