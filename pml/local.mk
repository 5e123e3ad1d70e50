dqplb_sources = \
	pml/dqplb/dqplb.h pml/dqplb/private.h \
	pml/dqplb/budget.c pml/dqplb/budget.h \
	pml/dqplb/control.c pml/dqplb/control.h \
	pml/dqplb/limits.c \
	pml/dqplb/post.c \
	pml/dqplb/recovery.c \
	pml/dqplb/sender.c \
	pml/dqplb/tracker.c
lanes_sources = \
	pml/lane.h \
	pml/lanes/copy.c \
	pml/lanes/gets.c \
	pml/lanes/hold.c \
	pml/lanes/lanes.c pml/lanes/lanes.h \
	pml/lanes/orders.c \
	pml/lanes/origin.c \
	pml/lanes/private.h \
	pml/lanes/ranges.c \
	pml/lanes/rest.c \
	pml/lanes/target.c \
	pml/lanes/ways.c pml/lanes/ways.h
pml_sources = \
	pml/active.c \
	pml/allowed.c pml/allowed.h \
	pml/available.c pml/available.h \
	pml/await.c \
	pml/backlog.c \
	pml/comm.c \
	pml/copy.h \
	pml/holdings.c \
	pml/internal.h \
	pml/match.c pml/match.h \
	pml/memory.c pml/memory.h \
	pml/packet.c pml/packet.h \
	pml/pml.c pml/pml.h \
	pml/pool.c \
	pml/protocol.c pml/protocol.h \
	pml/receive.c \
	pml/region.c \
	pml/rest.c \
	pml/self.c \
	pml/send.c \
	pml/traffic.c \
	pml/transport.h \
	$(dqplb_sources) \
	$(lanes_sources) \
	pml/lanes/offer.c \
	pml/shm/bell.c \
	pml/shm/cma.c pml/shm/cma.h \
	pml/shm/help.c pml/shm/help.h \
	pml/shm/neighbour.c \
	pml/shm/offer.h \
	pml/shm/pace.c pml/shm/pace.h \
	pml/shm/ring.c pml/shm/ring.h \
	pml/shm/segment.c pml/shm/segment.h \
	pml/shm/serve.c pml/shm/serve.h \
	pml/shm/shm.c pml/shm/shm.h \
	pml/shm/wake.c \
	pml/tcp/card.c \
	pml/tcp/hold.c \
	pml/tcp/lane.c pml/tcp/lane.h \
	pml/tcp/lane_in.c \
	pml/tcp/lane_out.c \
	pml/tcp/keep.c pml/tcp/keep.h \
	pml/tcp/meet.h \
	pml/tcp/open.c \
	pml/tcp/room.c \
	pml/tcp/stream.c \
	pml/tcp/tcp.c pml/tcp/tcp.h \
	pml/tcp/pipe.c pml/tcp/pipe.h pml/tcp/trouble.c pml/tcp/trouble.h
libncclx_core_la_SOURCES += $(pml_sources)
