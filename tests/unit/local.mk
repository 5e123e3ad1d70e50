# see tests/local.mk

unit_tests += tests/unit/bootstrap
tests_unit_bootstrap_SOURCES = tests/unit/bootstrap.c
tests_unit_bootstrap_CFLAGS = $(UNIT_CFLAGS)
tests_unit_bootstrap_LDADD = $(UNIT_LIBS)

unit_tests += tests/unit/topo
tests_unit_topo_SOURCES = tests/unit/topo.c
tests_unit_topo_CFLAGS = $(UNIT_CFLAGS)
tests_unit_topo_LDADD = $(UNIT_LIBS)
