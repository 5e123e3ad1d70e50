# The simulator: each program compiles the cores it drives anew, with the planted bugs switchable.
SIM_CPPFLAGS = $(AM_CPPFLAGS) -DPLANTED_BUGS
SIM_ENGINE = tests/sim/engine.c tests/sim/engine.h
EXTRA_DIST += $(SIM_ENGINE)
