include_HEADERS = runtime/ncclx.h
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = runtime/ncclx.pc
EXTRA_DIST += runtime/ncclx.map
