# Benchmarks: one source for ncclx and for the MPI libraries that are installed. Nothing of it is built by `make` or tested by `make check`.
EXTRA_PROGRAMS = tests/perf/perf-ncclx tests/perf/perf-floor tests/perf/report
tests_perf_perf_ncclx_SOURCES = tests/perf/kernel.c tests/perf/api_ncclx.h
tests_perf_perf_ncclx_CPPFLAGS = $(AM_CPPFLAGS) -DAPI_HEADER='"api_ncclx.h"'
tests_perf_perf_ncclx_LDADD = libncclx.la
tests_perf_perf_floor_SOURCES = tests/perf/floor.c
tests_perf_report_SOURCES = tests/perf/report.c
EXTRA_DIST += tests/perf/bench tests/perf/api_mpi.h
CLEANFILES += tests/perf/perf-mpich tests/perf/perf-openmpi $(EXTRA_PROGRAMS)

perf-programs: all
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) $(EXTRA_PROGRAMS)
	@for library in mpich openmpi; do \
	    if command -v mpicc.$$library > /dev/null; then \
	        mpicc.$$library -O2 -w -DAPI_HEADER='"api_mpi.h"' $(srcdir)/tests/perf/kernel.c -o tests/perf/perf-$$library || exit 1; \
	    fi; \
	done

bench: perf-programs
	top_builddir=$$(pwd) $(srcdir)/tests/perf/bench $(BENCH_FLAGS)
.PHONY: bench perf-programs
