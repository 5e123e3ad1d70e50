noinst_HEADERS += bootstrap/bootstrap.h
