# ncclx-perf and what it runs: one source for ncclx and for the MPI libraries that are installed.
pkglibexec_PROGRAMS = tests/perf/perf-ncclx tests/perf/perf-floor tests/perf/perf-socket tests/perf/perf-iperf3 tests/perf/perf-watch \
  tests/perf/report
tests_perf_perf_ncclx_SOURCES = tests/perf/kernel.c tests/perf/api_ncclx.h tests/perf/common.h tests/perf/turns.h
tests_perf_perf_ncclx_CPPFLAGS = $(AM_CPPFLAGS) -DAPI_HEADER='"api_ncclx.h"'
tests_perf_perf_ncclx_LDADD = libncclx.la
tests_perf_perf_floor_SOURCES = tests/perf/floor.c tests/perf/common.h tests/perf/turns.h
tests_perf_perf_socket_SOURCES = tests/perf/socket.c tests/perf/common.h tests/perf/turns.h
tests_perf_perf_iperf3_SOURCES = tests/perf/iperf3.c tests/perf/common.h tests/perf/turns.h
tests_perf_perf_watch_SOURCES = tests/perf/watch.c tests/perf/turns.h
tests_perf_report_SOURCES = tests/perf/report.c

# The MPI programs are compiled where the libraries are: by ncclx-perf itself, from these.
perfsourcedir = $(pkglibexecdir)
perfsource_DATA = tests/perf/kernel.c tests/perf/api_mpi.h tests/perf/common.h tests/perf/turns.h
EXTRA_DIST += tests/perf/README.md tests/perf/ncclx-perf.in $(perfsource_DATA)

bin_SCRIPTS += tests/perf/ncclx-perf
tests/perf/ncclx-perf: tests/perf/ncclx-perf.in Makefile
	$(AM_V_GEN)mkdir -p tests/perf && sed -e "s|@HELPERS@|$$($(from)=$(bindir) $(pkglibexecdir))|" -e "s|@VERSION@|$(VERSION)|" \
	  $(srcdir)/tests/perf/ncclx-perf.in >$@.new && chmod +x $@.new && mv $@.new $@
CLEANFILES += tests/perf/ncclx-perf tests/perf/perf-mpich tests/perf/perf-openmpi

bench: all
	@for library in mpich openmpi; do \
	    if command -v mpicc.$$library >/dev/null; then \
	        mpicc.$$library -O2 -w -DAPI_HEADER='"api_mpi.h"' $(srcdir)/tests/perf/kernel.c -o tests/perf/perf-$$library || exit 1; \
	    fi; \
	done
	tests/perf/ncclx-perf $(BENCH_FLAGS)
.PHONY: bench
plain_script_tests += tests/perf.t

# What a start costs here, for the model of large starts.
check_PROGRAMS += tests/perf/startup_costs
tests_perf_startup_costs_SOURCES = tests/perf/startup_costs.c $(server_sources) launcher/link.c launcher/cpus.c
tests_perf_startup_costs_CPPFLAGS = $(AM_CPPFLAGS)
tests_perf_startup_costs_LDADD = launcher/liblauncher.la bootstrap/libkvx.la $(CORE_LIBS) $(EVENT_LIBS)
