AM_CPPFLAGS += -DNCCLX_SYSTEM_CONFIG='"$(sysconfdir)/ncclx.conf"'

libncclx_core_la_SOURCES += \
	runtime/base/area.c runtime/base/area.h \
	runtime/base/base.h \
	runtime/base/choice.c runtime/base/choice.h \
	runtime/base/clock.h \
	runtime/base/comm.h \
	runtime/base/config.c runtime/base/config.h \
	runtime/base/config_parse.c \
	runtime/base/copy.c runtime/base/copy.h \
	runtime/base/error.c runtime/base/error.h \
	runtime/base/file.c runtime/base/file.h \
	runtime/base/info.c runtime/base/info.h \
	runtime/base/job.h \
	runtime/base/log.c runtime/base/log.h \
	runtime/base/op.c runtime/base/op.h \
	runtime/base/planted.h \
	runtime/base/process.c runtime/base/process.h \
	runtime/base/request.c runtime/base/request.h \
	runtime/base/rt.c runtime/base/rt.h \
	runtime/base/type.c runtime/base/type.h \
	runtime/base/wait.c runtime/base/wait.h

# Reduction loops. Flags, not -O, so that the user's CFLAGS stay in force; none of them changes a result.
noinst_LTLIBRARIES += libncclx_op.la
libncclx_op_la_CFLAGS = $(AM_CFLAGS) -fopenmp-simd -fno-trapping-math -ffp-contract=off
libncclx_op_la_SOURCES = \
	runtime/base/op_float.c \
	runtime/base/op_fp16.c \
	runtime/base/op_integer.c \
	runtime/base/op_kernel.h \
	runtime/base/op_pair.c \
	runtime/base/op_small.c \
	runtime/base/small_float.h
libncclx_core_la_LIBADD += libncclx_op.la
