noinst_HEADERS += osc/osc.h
