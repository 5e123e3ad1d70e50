noinst_HEADERS += bootstrap/bootstrap.h
libncclx_core_la_SOURCES += \
	bootstrap/call.c \
	bootstrap/cards.c \
	bootstrap/client.c bootstrap/client.h \
	bootstrap/job.c \
	bootstrap/nodes.c \
	bootstrap/segment.c

# The exchange between daemons is no part of the library that programs use.
kvx_sources = \
	bootstrap/kvx/cache.c \
	bootstrap/kvx/fence.c \
	bootstrap/kvx/kvx.c \
	bootstrap/kvx/map.c \
	bootstrap/kvx/names.c \
	bootstrap/kvx/request.c \
	bootstrap/kvx/wire.c
noinst_LTLIBRARIES += bootstrap/libkvx.la
bootstrap_libkvx_la_SOURCES = $(kvx_sources) bootstrap/kvx/kvx.h bootstrap/kvx/private.h bootstrap/kvx/wire.h
bootstrap_libkvx_la_LIBADD = libncclx_core.la
noinst_HEADERS += bootstrap/oob/oob.h
