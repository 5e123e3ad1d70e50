libncclx_core_la_SOURCES += \
	coll/algorithms.h \
	coll/allgather.c \
	coll/allreduce.c \
	coll/alltoall.c \
	coll/barrier.c \
	coll/bcast.c \
	coll/coll.h \
	coll/executor.c coll/executor.h \
	coll/halving.c \
	coll/reduce.c \
	coll/schedule.c coll/schedule.h \
	coll/select.c coll/select.h
