libncclx_core_la_SOURCES += \
	runtime/base/area.c runtime/base/area.h \
	runtime/base/base.h \
	runtime/base/clock.h \
	runtime/base/comm.h \
	runtime/base/config.h \
	runtime/base/error.c runtime/base/error.h \
	runtime/base/job.h \
	runtime/base/log.h \
	runtime/base/op.h \
	runtime/base/planted.h \
	runtime/base/process.c runtime/base/process.h \
	runtime/base/request.c runtime/base/request.h \
	runtime/base/rt.c runtime/base/rt.h \
	runtime/base/type.h \
	runtime/base/wait.c runtime/base/wait.h
