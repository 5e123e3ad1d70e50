libncclx_core_la_SOURCES += \
	coll/algorithms.h \
	coll/alone.c \
	coll/allgather.c \
	coll/allreduce.c \
	coll/alltoall.c \
	coll/barrier.c \
	coll/bcast.c \
	coll/blocks.c coll/blocks.h \
	coll/check.c coll/check.h \
	coll/check_counts.c coll/check_counts.h \
	coll/check_run.c \
	coll/coll.c coll/coll.h \
	coll/executor.c coll/executor.h \
	coll/gather.c \
	coll/halving.c \
	coll/operation.c coll/operation.h \
	coll/reduce.c \
	coll/reduce_scatter.c \
	coll/scan.c \
	coll/schedule.c coll/schedule.h \
	coll/segment.c coll/segment.h \
	coll/select.c coll/select.h \
	coll/shared.c coll/shared.h coll/shared_parts.h \
	coll/shared_blocks.c \
	coll/shared_copy.c \
	coll/shared_lists.c \
	coll/shared_seats.c \
	coll/shared_tree.c \
	coll/span_index.c coll/span_index.h
