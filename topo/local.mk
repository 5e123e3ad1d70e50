noinst_HEADERS += topo/topo.h
libncclx_core_la_SOURCES += \
	topo/cpulist.c topo/cpulist.h \
	topo/distance.c \
	topo/gpus.c \
	topo/node.c
