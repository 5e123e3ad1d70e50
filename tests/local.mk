# Tests speak TAP and run under prove; `make check` ends with prove's summary.
#
#   tests/unit/NAME.c  cmocka, sees hidden symbols      -> unit_tests
#   tests/sim/NAME.c   the simulator, TAP by itself     -> sim_tests
#   tests/fuzz/NAME.c  fuzzers, TAP by themselves       -> fuzz_tests
#   tests/mp/NAME.c    programs of several ranks, public interface only, started by scripts -> mp_programs
#   tests/NAME.t       scripts (bash, tests/lib.sh)     -> script_tests; plain_script_tests gain nothing from sanitizers
#
# `make check CHECK="tests/launcher.t"` runs some; PROVE_FLAGS=-v shows each line.
CORE_LIBS = libncclx_core.la $(PMIX_LIBS) $(HWLOC_LIBS)
UNIT_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
UNIT_LIBS = $(CORE_LIBS) $(CMOCKA_LIBS)

unit_tests =
sim_tests =
mp_programs =
script_tests = tests/info.t tests/huge.t
script_tests += tests/bootstrap.t
EXTRA_DIST += tests/launcher.sh tests/agent
script_tests += tests/launcher.t tests/launcher_hosts.t tests/launcher_input.t tests/launcher_io.t tests/launcher_signals.t tests/launcher_strangers.t tests/launcher_surroundings.t
EXTRA_DIST += tests/hosts-cluster tests/hosts.sh
EXTRA_DIST += tests/slurm-cluster
script_tests += tests/server.t tests/spawn.t tests/slurm.t tests/tcp.t tests/tcp_death.t tests/lanes.t tests/connections.t tests/copy.t tests/mixed.t
EXTRA_DIST += tests/every.sh
plain_script_tests = tests/man.t
plain_script_tests += tests/chaos.t tests/hosts_start.t tests/hosts_data.t tests/hosts_failures.t tests/hosts_spawn.t tests/launcher_many.t tests/slurm_launcher.t
EXTRA_DIST += tests/map_cases
script_tests += tests/launcher_display.t
plain_script_tests += tests/debugger.t
plain_script_tests += tests/launcher_map.t
plain_script_tests += tests/ncclxcc.t
plain_script_tests += tests/readme.t
plain_script_tests += tests/tree.t
plain_script_tests += tests/hosts.t tests/oob.t

include tests/unit/local.mk
include tests/sim/local.mk
include tests/mp/local.mk
include tests/fuzz/local.mk
include tests/perf/local.mk

EXTRA_DIST += tests/lib.sh tests/lsan.supp tests/one-test $(script_tests) $(plain_script_tests)
check_PROGRAMS += $(sim_tests) $(fuzz_tests) $(mp_programs)
if HAVE_CMOCKA
check_PROGRAMS += $(unit_tests)
tap_programs = $(unit_tests) $(sim_tests) $(fuzz_tests)
else
tap_programs = $(sim_tests) $(fuzz_tests)
endif
if SANITIZED
CHECK = $(tap_programs) $(script_tests)
else
CHECK = $(tap_programs) $(script_tests) $(plain_script_tests)
endif

PROVE_FLAGS = --timer --failures
# In two steps: `all` is a make of its own, which must not build the same library at the same time.
check-programs: all
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) $(check_PROGRAMS)
# The names by which tests/one-test knows the tests of this build.
check-names:
	@for t in $(CHECK); do echo $(abs_builddir)/$$t; done
check-local: check-programs
	@test -n "$(PROVE)" || { echo "prove is needed to run the tests (Debian, Ubuntu: perl)"; exit 1; }
	@$(PROVE) $(PROVE_FLAGS) --exec $(srcdir)/tests/one-test $(CHECK:%=$(abs_builddir)/%)
.PHONY: check-programs check-names
