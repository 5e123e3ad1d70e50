noinst_HEADERS += pml/pml.h
