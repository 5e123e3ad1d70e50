noinst_HEADERS += osc/osc.h
libncclx_core_la_SOURCES += osc/window_core.c osc/window_core.h
# The rest joins the library with the transports that it calls.
osc_sources = \
	osc/access.c \
	osc/messages.c \
	osc/sync.c \
	osc/targets.c \
	osc/window.c osc/window.h
