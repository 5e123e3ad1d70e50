noinst_HEADERS += topo/topo.h
