noinst_HEADERS += coll/coll.h
