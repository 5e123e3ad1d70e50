# Programs a user would start from; not installed as programs, but as sources.
EXTRA_DIST += \
	examples/data/1138_bus.mtx \
	examples/cg.c examples/cg_halo.c examples/cg_halo.h examples/cg_system.c examples/cg_system.h \
	examples/hello.c \
	examples/matrix_market.c examples/matrix_market.h \
	examples/pingpong.c \
	examples/ring.c
