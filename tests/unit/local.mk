# see tests/local.mk

unit_tests += tests/unit/group
tests_unit_group_SOURCES = tests/unit/group.c
tests_unit_group_CFLAGS = $(UNIT_CFLAGS)
tests_unit_group_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/choice
tests_unit_choice_SOURCES = tests/unit/choice.c
tests_unit_choice_CFLAGS = $(UNIT_CFLAGS)
tests_unit_choice_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/pace
tests_unit_pace_SOURCES = tests/unit/pace.c
tests_unit_pace_CFLAGS = $(UNIT_CFLAGS)
tests_unit_pace_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/ways
tests_unit_ways_SOURCES = tests/unit/ways.c
tests_unit_ways_CFLAGS = $(UNIT_CFLAGS)
tests_unit_ways_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/handles
tests_unit_handles_SOURCES = tests/unit/handles.c
tests_unit_handles_CFLAGS = $(UNIT_CFLAGS)
tests_unit_handles_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/split
tests_unit_split_SOURCES = tests/unit/split.c
tests_unit_split_CFLAGS = $(UNIT_CFLAGS)
tests_unit_split_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/base_config
tests_unit_base_config_SOURCES = tests/unit/base_config.c tests/unit/capture.h
tests_unit_base_config_CFLAGS = $(UNIT_CFLAGS)
tests_unit_base_config_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/base_core
tests_unit_base_core_SOURCES = tests/unit/base_core.c tests/unit/capture.h
tests_unit_base_core_CFLAGS = $(UNIT_CFLAGS)
tests_unit_base_core_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/base_log
tests_unit_base_log_SOURCES = tests/unit/base_log.c tests/unit/capture.h
tests_unit_base_log_CFLAGS = $(UNIT_CFLAGS)
tests_unit_base_log_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/base_op
tests_unit_base_op_SOURCES = tests/unit/base_op.c
tests_unit_base_op_CFLAGS = $(UNIT_CFLAGS)
tests_unit_base_op_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/bootstrap
tests_unit_bootstrap_SOURCES = tests/unit/bootstrap.c
tests_unit_bootstrap_CFLAGS = $(UNIT_CFLAGS)
tests_unit_bootstrap_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/kvx
tests_unit_kvx_SOURCES = tests/unit/kvx.c
tests_unit_kvx_CFLAGS = $(UNIT_CFLAGS)
tests_unit_kvx_LDADD = bootstrap/libkvx.la $(UNIT_LIBS)

unit_tests += tests/unit/oob
tests_unit_oob_SOURCES = tests/unit/oob.c
tests_unit_oob_CFLAGS = $(UNIT_CFLAGS)
tests_unit_oob_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/oob_sockets
tests_unit_oob_sockets_SOURCES = tests/unit/oob_sockets.c tests/unit/oob_world.c tests/unit/oob_world.h
tests_unit_oob_sockets_CFLAGS = $(UNIT_CFLAGS)
tests_unit_oob_sockets_LDADD = $(UNIT_LIBS)

# One end as a program, for tests/oob.t.
check_PROGRAMS += tests/unit/oob_peer
tests_unit_oob_peer_SOURCES = tests/unit/oob_peer.c
tests_unit_oob_peer_LDADD = $(CORE_LIBS)

unit_tests += tests/unit/topo
tests_unit_topo_SOURCES = tests/unit/topo.c
tests_unit_topo_CFLAGS = $(UNIT_CFLAGS)
tests_unit_topo_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/check
tests_unit_check_SOURCES = tests/unit/check.c
tests_unit_check_CFLAGS = $(UNIT_CFLAGS)
tests_unit_check_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/coll_schedule
tests_unit_coll_schedule_SOURCES = tests/unit/coll_schedule.c tests/sim/coll_data.c tests/sim/coll_data.h \
	tests/sim/coll_world.c tests/sim/coll_world.h
tests_unit_coll_schedule_CFLAGS = $(UNIT_CFLAGS)
tests_unit_coll_schedule_LDADD = $(UNIT_LIBS)

WINDOW_WORLD = tests/unit/window_world.c tests/unit/window_world.h tests/unit/pml_standin.c tests/unit/pml_standin.h
unit_tests += tests/unit/window
tests_unit_window_SOURCES = tests/unit/window.c $(WINDOW_WORLD)
tests_unit_window_CFLAGS = $(UNIT_CFLAGS)
tests_unit_window_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/window_threads
tests_unit_window_threads_SOURCES = tests/unit/window_threads.c $(WINDOW_WORLD)
tests_unit_window_threads_CFLAGS = $(UNIT_CFLAGS)
tests_unit_window_threads_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/pml
tests_unit_pml_SOURCES = tests/unit/pml.c tests/unit/pml_world.c tests/unit/pml_world.h
tests_unit_pml_CFLAGS = $(UNIT_CFLAGS)
tests_unit_pml_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/pml_short
tests_unit_pml_short_SOURCES = tests/unit/pml_short.c tests/unit/pml_world.c tests/unit/pml_world.h
tests_unit_pml_short_CFLAGS = $(UNIT_CFLAGS)
tests_unit_pml_short_LDFLAGS = -Wl,--wrap=base_alloc,--wrap=base_calloc
tests_unit_pml_short_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/pml_meanwhile
tests_unit_pml_meanwhile_SOURCES = tests/unit/pml_meanwhile.c tests/unit/pml_world.c tests/unit/pml_world.h
tests_unit_pml_meanwhile_CFLAGS = $(UNIT_CFLAGS)
tests_unit_pml_meanwhile_LDFLAGS = -Wl,--wrap=shm_segment_of
tests_unit_pml_meanwhile_LDADD = $(UNIT_LIBS)

TCP_WORLD = tests/unit/tcp_world.c tests/unit/tcp_world.h tests/unit/pml_world.c tests/unit/pml_world.h
unit_tests += tests/unit/tcp_hostile
tests_unit_tcp_hostile_SOURCES = tests/unit/tcp_hostile.c $(TCP_WORLD)
tests_unit_tcp_hostile_CFLAGS = $(UNIT_CFLAGS)
tests_unit_tcp_hostile_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/tcp_floods
tests_unit_tcp_floods_SOURCES = tests/unit/tcp_floods.c $(TCP_WORLD)
tests_unit_tcp_floods_CFLAGS = $(UNIT_CFLAGS)
tests_unit_tcp_floods_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/tcp_card
tests_unit_tcp_card_SOURCES = tests/unit/tcp_card.c
tests_unit_tcp_card_CFLAGS = $(UNIT_CFLAGS)
tests_unit_tcp_card_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/tcp_pipe
tests_unit_tcp_pipe_SOURCES = tests/unit/tcp_pipe.c
tests_unit_tcp_pipe_CFLAGS = $(UNIT_CFLAGS)
tests_unit_tcp_pipe_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/tcp_room
tests_unit_tcp_room_SOURCES = tests/unit/tcp_room.c $(TCP_WORLD)
tests_unit_tcp_room_CFLAGS = $(UNIT_CFLAGS)
tests_unit_tcp_room_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/tcp_long
tests_unit_tcp_long_SOURCES = tests/unit/tcp_long.c $(TCP_WORLD)
tests_unit_tcp_long_CFLAGS = $(UNIT_CFLAGS)
tests_unit_tcp_long_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/tcp_watch
tests_unit_tcp_watch_SOURCES = tests/unit/tcp_watch.c $(TCP_WORLD)
tests_unit_tcp_watch_CFLAGS = $(UNIT_CFLAGS)
tests_unit_tcp_watch_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/pml_threads
tests_unit_pml_threads_SOURCES = tests/unit/pml_threads.c tests/unit/pml_world.c tests/unit/pml_world.h
tests_unit_pml_threads_CFLAGS = $(UNIT_CFLAGS)
tests_unit_pml_threads_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/coll_shared
tests_unit_coll_shared_SOURCES = tests/unit/coll_shared.c tests/sim/coll_data.c tests/sim/coll_data.h
tests_unit_coll_shared_CFLAGS = $(UNIT_CFLAGS)
tests_unit_coll_shared_LDADD = $(UNIT_LIBS)
unit_tests += tests/unit/match
tests_unit_match_SOURCES = tests/unit/match.c
tests_unit_match_CFLAGS = $(UNIT_CFLAGS)
tests_unit_match_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/ring
tests_unit_ring_SOURCES = tests/unit/ring.c
tests_unit_ring_CFLAGS = $(UNIT_CFLAGS)
tests_unit_ring_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/launcher_hosts
tests_unit_launcher_hosts_SOURCES = tests/unit/launcher_hosts.c
tests_unit_launcher_hosts_CFLAGS = $(UNIT_CFLAGS)
tests_unit_launcher_hosts_LDADD = launcher/liblauncher.la $(UNIT_LIBS)

unit_tests += tests/unit/launcher_map
tests_unit_launcher_map_SOURCES = tests/unit/launcher_map.c
tests_unit_launcher_map_CFLAGS = $(UNIT_CFLAGS)
tests_unit_launcher_map_LDADD = launcher/liblauncher.la $(UNIT_LIBS)

unit_tests += tests/unit/launcher_blame
tests_unit_launcher_blame_SOURCES = tests/unit/launcher_blame.c
tests_unit_launcher_blame_CFLAGS = $(UNIT_CFLAGS)
tests_unit_launcher_blame_LDADD = launcher/liblauncher.la $(UNIT_LIBS)

unit_tests += tests/unit/launcher_progress
tests_unit_launcher_progress_SOURCES = tests/unit/launcher_progress.c
tests_unit_launcher_progress_CFLAGS = $(UNIT_CFLAGS)
tests_unit_launcher_progress_LDADD = launcher/liblauncher.la $(UNIT_LIBS)

unit_tests += tests/unit/launcher_sweep
tests_unit_launcher_sweep_SOURCES = tests/unit/launcher_sweep.c launcher/dying.c launcher/dying.h launcher/sweep.c launcher/sweep.h
tests_unit_launcher_sweep_CFLAGS = $(UNIT_CFLAGS)
tests_unit_launcher_sweep_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/launcher_jobs
tests_unit_launcher_jobs_SOURCES = tests/unit/launcher_jobs.c
tests_unit_launcher_jobs_CFLAGS = $(UNIT_CFLAGS)
tests_unit_launcher_jobs_LDADD = launcher/liblauncher.la $(UNIT_LIBS)
unit_tests += tests/unit/launcher_message
tests_unit_launcher_message_SOURCES = tests/unit/launcher_message.c
tests_unit_launcher_message_CFLAGS = $(UNIT_CFLAGS)
tests_unit_launcher_message_LDADD = launcher/liblauncher.la $(UNIT_LIBS)

unit_tests += tests/unit/server_large
tests_unit_server_large_SOURCES = tests/unit/server_large.c launcher/cpus.c launcher/cpus.h launcher/server.h $(server_sources)
tests_unit_server_large_CFLAGS = $(UNIT_CFLAGS)
tests_unit_server_large_LDADD = launcher/liblauncher.la bootstrap/libkvx.la $(UNIT_LIBS) $(EVENT_LIBS)
unit_tests += tests/unit/server_exchange
tests_unit_server_exchange_SOURCES = tests/unit/server_exchange.c launcher/server_calls.h \
	launcher/server_exchange.c launcher/server_jobs.c launcher/server_modex.c launcher/server_names.c
tests_unit_server_exchange_CFLAGS = $(UNIT_CFLAGS)
tests_unit_server_exchange_LDADD = bootstrap/libkvx.la $(UNIT_LIBS)

unit_tests += tests/unit/launcher_order
tests_unit_launcher_order_SOURCES = tests/unit/launcher_order.c
tests_unit_launcher_order_CFLAGS = $(UNIT_CFLAGS)
tests_unit_launcher_order_LDADD = launcher/liblauncher.la $(UNIT_LIBS)

unit_tests += tests/unit/launcher_options
tests_unit_launcher_options_SOURCES = tests/unit/launcher_options.c
tests_unit_launcher_options_CFLAGS = $(UNIT_CFLAGS)
tests_unit_launcher_options_LDADD = launcher/liblauncher.la $(UNIT_LIBS)

# Ranks as threads over the real rings, under the thread sanitizer, whatever the rest is built with.
if HAVE_TSAN
TSAN_CFLAGS = -std=gnu11 -g -O1 -fno-strict-aliasing -fsanitize=thread $(WARN_CFLAGS) $(CMOCKA_CFLAGS)
unit_tests += tests/unit/pml_tsan
tests_unit_pml_tsan_SOURCES = tests/unit/pml_threads.c tests/unit/pml_world.c tests/unit/pml_world.h tests/unit/no_bootstrap.c \
	$(pml_sources) $(oob_sources) \
	runtime/base/area.c runtime/base/choice.c runtime/base/config.c runtime/base/config_parse.c runtime/base/copy.c \
	runtime/base/error.c runtime/base/log.c runtime/base/process.c runtime/base/request.c runtime/base/rt.c runtime/base/type.c runtime/base/wait.c
tests_unit_pml_tsan_CFLAGS = $(TSAN_CFLAGS)
tests_unit_pml_tsan_LDFLAGS = -fsanitize=thread
tests_unit_pml_tsan_LDADD = $(CMOCKA_LIBS)

unit_tests += tests/unit/ring_tsan
tests_unit_ring_tsan_SOURCES = tests/unit/ring.c pml/shm/ring.c
tests_unit_ring_tsan_CFLAGS = $(TSAN_CFLAGS)
tests_unit_ring_tsan_LDFLAGS = -fsanitize=thread
tests_unit_ring_tsan_LDADD = $(CMOCKA_LIBS)
endif

unit_tests += tests/unit/tree
tests_unit_tree_SOURCES = tests/unit/tree.c
tests_unit_tree_CFLAGS = $(UNIT_CFLAGS)
tests_unit_tree_LDADD = launcher/liblauncher.la $(UNIT_LIBS)

unit_tests += tests/unit/dqplb
tests_unit_dqplb_SOURCES = tests/unit/dqplb.c
tests_unit_dqplb_CFLAGS = $(UNIT_CFLAGS)
tests_unit_dqplb_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/huge
tests_unit_huge_SOURCES = tests/unit/huge.c
tests_unit_huge_CFLAGS = $(UNIT_CFLAGS)
tests_unit_huge_LDADD = $(UNIT_LIBS)
