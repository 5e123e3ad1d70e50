# see tests/local.mk

unit_tests += tests/unit/bootstrap
tests_unit_bootstrap_SOURCES = tests/unit/bootstrap.c
tests_unit_bootstrap_CFLAGS = $(UNIT_CFLAGS)
tests_unit_bootstrap_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/topo
tests_unit_topo_SOURCES = tests/unit/topo.c
tests_unit_topo_CFLAGS = $(UNIT_CFLAGS)
tests_unit_topo_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/coll_schedule
tests_unit_coll_schedule_SOURCES = tests/unit/coll_schedule.c tests/sim/coll_world.c tests/sim/coll_world.h
tests_unit_coll_schedule_CFLAGS = $(UNIT_CFLAGS)
tests_unit_coll_schedule_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/window
tests_unit_window_SOURCES = tests/unit/window.c $(osc_sources)
tests_unit_window_CFLAGS = $(UNIT_CFLAGS)
tests_unit_window_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/pml
tests_unit_pml_SOURCES = tests/unit/pml.c tests/unit/pml_world.c tests/unit/pml_world.h
tests_unit_pml_CFLAGS = $(UNIT_CFLAGS)
tests_unit_pml_LDADD = $(UNIT_LIBS)
