noinst_HEADERS += bootstrap/bootstrap.h
libncclx_core_la_SOURCES += \
	bootstrap/call.c \
	bootstrap/cards.c \
	bootstrap/client.c bootstrap/client.h \
	bootstrap/job.c \
	bootstrap/nodes.c \
	bootstrap/segment.c
