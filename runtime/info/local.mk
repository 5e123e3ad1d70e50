bin_PROGRAMS += runtime/ncclx-info
runtime_ncclx_info_SOURCES = \
	runtime/info/algorithms.c \
	runtime/info/config.c \
	runtime/info/info.h \
	runtime/info/main.c \
	runtime/info/memory.c \
	runtime/info/topology.c \
	runtime/info/transports.c
runtime_ncclx_info_LDADD = $(CORE_LIBS)
