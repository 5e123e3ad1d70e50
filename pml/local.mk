libncclx_core_la_SOURCES += \
	pml/match.c pml/match.h \
	pml/pml.h \
	pml/protocol.c pml/protocol.h
