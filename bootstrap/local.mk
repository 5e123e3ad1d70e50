noinst_HEADERS += bootstrap/bootstrap.h
libncclx_core_la_SOURCES += \
	bootstrap/call.c \
	bootstrap/cards.c \
	bootstrap/fetch.c \
	bootstrap/client.c bootstrap/client.h \
	bootstrap/job.c \
	bootstrap/nodes.c \
	bootstrap/segment.c \
	bootstrap/step.c \
	bootstrap/watch.c

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

# Sockets between hosts: for the launcher, and for the transports that need them. libsodium is opened at run time by those
# that use one, so nothing is linked to it.
oob_core_sources = \
	bootstrap/oob/crypto.c \
	bootstrap/oob/guests.c \
	bootstrap/oob/seal.c \
	bootstrap/oob/shake.c \
	bootstrap/oob/tries.c
oob_sources = $(oob_core_sources) \
	bootstrap/oob/address.c \
	bootstrap/oob/connect.c \
	bootstrap/oob/endpoint.c \
	bootstrap/oob/interfaces.c \
	bootstrap/oob/line.c \
	bootstrap/oob/listen.c
libncclx_core_la_SOURCES += $(oob_sources) bootstrap/oob/address.h bootstrap/oob/crypto.h bootstrap/oob/endpoint.h \
	bootstrap/oob/guests.h bootstrap/oob/oob.h bootstrap/oob/shake.h bootstrap/oob/tries.h
