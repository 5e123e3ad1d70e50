# The simulator: each program compiles the cores it drives anew, with the planted bugs switchable.
SIM_CPPFLAGS = $(AM_CPPFLAGS) -DPLANTED_BUGS
SIM_ENGINE = tests/sim/engine.c tests/sim/engine.h

sim_tests += tests/sim/matching
tests_sim_matching_SOURCES = tests/sim/matching.c pml/match.c pml/protocol.c $(SIM_ENGINE)
tests_sim_matching_CPPFLAGS = $(SIM_CPPFLAGS)
EXTRA_DIST += $(SIM_ENGINE)

sim_tests += tests/sim/offer
tests_sim_offer_SOURCES = tests/sim/offer.c $(SIM_ENGINE)
tests_sim_offer_CPPFLAGS = $(SIM_CPPFLAGS)

sim_tests += tests/sim/pace
tests_sim_pace_SOURCES = tests/sim/pace.c pml/shm/pace.c runtime/base/choice.c $(SIM_ENGINE)
tests_sim_pace_CPPFLAGS = $(SIM_CPPFLAGS)

sim_tests += tests/sim/coll
tests_sim_coll_SOURCES = tests/sim/coll.c tests/sim/coll_data.c tests/sim/coll_data.h tests/sim/coll_world.c \
	tests/sim/coll_world.h $(SIM_ENGINE) \
	coll/allgather.c coll/allreduce.c coll/alltoall.c coll/barrier.c coll/bcast.c coll/blocks.c coll/executor.c coll/gather.c \
	coll/halving.c coll/reduce.c coll/reduce_scatter.c coll/scan.c coll/schedule.c coll/select.c coll/shared.c \
	coll/shared_blocks.c coll/shared_copy.c coll/span_index.c
tests_sim_coll_CPPFLAGS = $(SIM_CPPFLAGS)
tests_sim_coll_LDADD = $(CORE_LIBS)

sim_tests += tests/sim/coll_scale
tests_sim_coll_scale_SOURCES = tests/sim/coll_scale.c
tests_sim_coll_scale_LDADD = $(CORE_LIBS)

sim_tests += tests/sim/window
tests_sim_window_SOURCES = tests/sim/window.c osc/window_core.c $(SIM_ENGINE)
tests_sim_window_CPPFLAGS = $(SIM_CPPFLAGS)

sim_tests += tests/sim/startup
STARTUP_WORLD = tests/sim/startup_world.c tests/sim/startup_world.h tests/sim/startup_driver.c tests/sim/startup_private.h \
	$(tree_sources) launcher/frame.c launcher/report.c $(kvx_sources)
tests_sim_startup_SOURCES = tests/sim/startup.c $(STARTUP_WORLD) $(SIM_ENGINE)
tests_sim_startup_CPPFLAGS = $(SIM_CPPFLAGS)
tests_sim_startup_LDADD = $(CORE_LIBS)

sim_tests += tests/sim/startup_scale
tests_sim_startup_scale_SOURCES = tests/sim/startup_scale.c $(STARTUP_WORLD) $(SIM_ENGINE)
tests_sim_startup_scale_CPPFLAGS = $(SIM_CPPFLAGS)
tests_sim_startup_scale_LDADD = $(CORE_LIBS)

sim_tests += tests/sim/kvx
tests_sim_kvx_SOURCES = tests/sim/kvx.c $(kvx_sources) $(SIM_ENGINE)
tests_sim_kvx_CPPFLAGS = $(SIM_CPPFLAGS)
tests_sim_kvx_LDADD = $(CORE_LIBS)

sim_tests += tests/sim/spawn
tests_sim_spawn_SOURCES = tests/sim/spawn.c launcher/jobs.c $(kvx_sources) $(SIM_ENGINE)
tests_sim_spawn_CPPFLAGS = $(SIM_CPPFLAGS)
tests_sim_spawn_LDADD = $(CORE_LIBS)

sim_tests += tests/sim/kvx_scale
tests_sim_kvx_scale_SOURCES = tests/sim/kvx_scale.c $(kvx_sources) $(SIM_ENGINE)
tests_sim_kvx_scale_CPPFLAGS = $(SIM_CPPFLAGS)
tests_sim_kvx_scale_LDADD = $(CORE_LIBS)

sim_tests += tests/sim/dqplb
tests_sim_dqplb_SOURCES = tests/sim/dqplb.c $(dqplb_sources) $(SIM_ENGINE)
tests_sim_dqplb_CPPFLAGS = $(SIM_CPPFLAGS)
tests_sim_dqplb_LDADD = $(CORE_LIBS)

sim_tests += tests/sim/lanes
tests_sim_lanes_SOURCES = tests/sim/lanes.c tests/sim/lanes_wire.c tests/sim/lanes_wire.h tests/unit/pml_world.c tests/unit/pml_world.h \
	$(lanes_sources) $(SIM_ENGINE)
tests_sim_lanes_CPPFLAGS = $(SIM_CPPFLAGS)
tests_sim_lanes_LDFLAGS = -Wl,--wrap=clock_gettime
tests_sim_lanes_LDADD = $(CORE_LIBS)

sim_tests += tests/sim/control
tests_sim_control_SOURCES = tests/sim/control.c $(dqplb_sources) $(SIM_ENGINE)
tests_sim_control_CPPFLAGS = $(SIM_CPPFLAGS)
tests_sim_control_LDADD = $(CORE_LIBS)

sim_tests += tests/sim/oob
tests_sim_oob_SOURCES = tests/sim/oob.c $(oob_core_sources) $(SIM_ENGINE)
tests_sim_oob_CPPFLAGS = $(SIM_CPPFLAGS)
tests_sim_oob_LDADD = $(CORE_LIBS)

sim_tests += tests/sim/meet
tests_sim_meet_SOURCES = tests/sim/meet.c pml/tcp/keep.c pml/tcp/keep.h pml/tcp/meet.h $(SIM_ENGINE)
tests_sim_meet_CPPFLAGS = $(SIM_CPPFLAGS)
tests_sim_meet_LDADD = $(CORE_LIBS)

sim_tests += tests/sim/copy
tests_sim_copy_SOURCES = tests/sim/copy.c pml/copy.h $(SIM_ENGINE)
tests_sim_copy_CPPFLAGS = $(SIM_CPPFLAGS)
