# The simulator: each program compiles the cores it drives anew, with the planted bugs switchable.
SIM_CPPFLAGS = $(AM_CPPFLAGS) -DPLANTED_BUGS
SIM_ENGINE = tests/sim/engine.c tests/sim/engine.h

sim_tests += tests/sim/matching
tests_sim_matching_SOURCES = tests/sim/matching.c pml/match.c pml/protocol.c $(SIM_ENGINE)
tests_sim_matching_CPPFLAGS = $(SIM_CPPFLAGS)
