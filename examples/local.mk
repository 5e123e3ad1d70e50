# Programs a user would start from: built here, their sources distributed, not installed.
noinst_PROGRAMS += examples/cg examples/heat examples/hello examples/pingpong examples/ring
EXTRA_DIST += examples/data/1138_bus.mtx examples/heat.png

examples_cg_SOURCES = \
	examples/cg.c \
	examples/cg_halo.c examples/cg_halo.h \
	examples/cg_system.c examples/cg_system.h \
	examples/matrix_market.c examples/matrix_market.h
examples_cg_LDADD = libncclx.la -lm
examples_heat_SOURCES = \
	examples/heat.c \
	examples/heat_picture.c examples/heat_picture.h \
	examples/heat_plate.c examples/heat_plate.h \
	examples/heat_strip.c examples/heat_strip.h
examples_heat_CPPFLAGS = $(AM_CPPFLAGS)
examples_heat_CFLAGS = $(AM_CFLAGS) -ffp-contract=off
examples_heat_LDADD = libncclx.la -lm
if HAVE_PNG
examples_heat_CPPFLAGS += -DHEAT_PNG
examples_heat_CFLAGS += $(PNG_CFLAGS)
examples_heat_LDADD += $(PNG_LIBS)
endif
examples_hello_LDADD = libncclx.la
examples_pingpong_LDADD = libncclx.la
examples_ring_LDADD = libncclx.la
