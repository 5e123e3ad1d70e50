# Tests speak TAP and run under prove; `make check` ends with prove's summary.
#
#   tests/unit/NAME.c  cmocka, sees hidden symbols      -> unit_tests
#   tests/sim/NAME.c   the simulator, TAP by itself     -> sim_tests
#   tests/mp/NAME.c    programs of several ranks, public interface only, started by scripts -> mp_programs
#   tests/NAME.t       scripts (bash, tests/lib.sh)     -> script_tests
#
# `make check CHECK="tests/launcher.t"` runs some; PROVE_FLAGS=-v shows each line.
CORE_LIBS = libncclx_core.la $(PMIX_LIBS) $(HWLOC_LIBS)
UNIT_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
UNIT_LIBS = $(CORE_LIBS) $(CMOCKA_LIBS)

unit_tests =
sim_tests =
mp_programs =
script_tests =

include tests/unit/local.mk
include tests/sim/local.mk
include tests/mp/local.mk

EXTRA_DIST += tests/lib.sh $(script_tests)
check_PROGRAMS += $(sim_tests) $(mp_programs)
if HAVE_CMOCKA
check_PROGRAMS += $(unit_tests)
tap_programs = $(unit_tests) $(sim_tests)
else
tap_programs = $(sim_tests)
endif

CHECK = $(tap_programs) $(script_tests)
PROVE_FLAGS =
check-local: all $(check_PROGRAMS)
	@test -n "$(PROVE)" || { echo "prove is needed to run the tests (Debian, Ubuntu: perl)"; exit 1; }
	@set -e; list=; for t in $(CHECK); do if test -e $$t; then list="$$list ./$$t"; else list="$$list $(srcdir)/$$t"; fi; done; \
	top_builddir=$$(pwd) top_srcdir=$$(cd $(srcdir) && pwd) $(PROVE) $(PROVE_FLAGS) --timer -e '' $$list
