noinst_HEADERS += osc/osc.h
libncclx_core_la_SOURCES += \
	osc/access.c \
	osc/accumulate.c \
	osc/atomic.c osc/atomic.h \
	osc/epochs.c \
	osc/locks.c \
	osc/messages.c \
	osc/plans.c \
	osc/requests.c \
	osc/signals.c \
	osc/sync.c \
	osc/targets.c \
	osc/ticket.h \
	osc/window.c osc/window.h \
	osc/window_core.c osc/window_core.h
