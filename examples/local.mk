# Programs a user would start from: built here, their sources distributed, not installed.
noinst_PROGRAMS += examples/cg examples/hello examples/pingpong examples/ring
EXTRA_DIST += examples/data/1138_bus.mtx

examples_cg_SOURCES = \
	examples/cg.c \
	examples/cg_halo.c examples/cg_halo.h \
	examples/cg_system.c examples/cg_system.h \
	examples/matrix_market.c examples/matrix_market.h
examples_cg_LDADD = libncclx.la -lm
examples_hello_LDADD = libncclx.la
examples_pingpong_LDADD = libncclx.la
examples_ring_LDADD = libncclx.la
