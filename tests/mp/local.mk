# see tests/local.mk

MP_LIBS = libncclx.la

mp_programs += tests/mp/absent
tests_mp_absent_SOURCES = tests/mp/absent.c tests/mp/check.h
tests_mp_absent_LDADD = $(MP_LIBS)

mp_programs += tests/mp/behind
tests_mp_behind_SOURCES = tests/mp/behind.c tests/mp/check.h
tests_mp_behind_LDADD = $(MP_LIBS)
mp_programs += tests/mp/burst
tests_mp_burst_SOURCES = tests/mp/burst.c tests/mp/check.h
tests_mp_burst_LDADD = $(MP_LIBS)

mp_programs += tests/mp/check
tests_mp_check_SOURCES = tests/mp/check.c tests/mp/check.h
tests_mp_check_LDADD = $(MP_LIBS)

mp_programs += tests/mp/coll
tests_mp_coll_SOURCES = tests/mp/coll.c tests/mp/coll_call.c tests/mp/coll_call.h
tests_mp_coll_LDADD = $(MP_LIBS)
mp_programs += tests/mp/grid
tests_mp_grid_SOURCES = tests/mp/grid.c tests/mp/coll_call.c tests/mp/coll_call.h
tests_mp_grid_LDADD = $(MP_LIBS)

mp_programs += tests/mp/comm
tests_mp_comm_SOURCES = tests/mp/comm.c tests/mp/check.h
tests_mp_comm_LDADD = $(MP_LIBS)

mp_programs += tests/mp/crowd
tests_mp_crowd_SOURCES = tests/mp/crowd.c tests/mp/check.h
tests_mp_crowd_LDADD = $(MP_LIBS)

mp_programs += tests/mp/death
tests_mp_death_SOURCES = tests/mp/death.c tests/mp/check.h
tests_mp_death_LDADD = $(MP_LIBS)

# Sees hidden symbols, as do keys and ten.
mp_programs += tests/mp/deadline
tests_mp_deadline_SOURCES = tests/mp/deadline.c tests/mp/check.h
tests_mp_deadline_LDADD = $(CORE_LIBS)

mp_programs += tests/mp/errors
tests_mp_errors_SOURCES = tests/mp/errors.c tests/mp/check.h
tests_mp_errors_LDADD = $(MP_LIBS)

mp_programs += tests/mp/exchange
tests_mp_exchange_SOURCES = tests/mp/exchange.c
tests_mp_exchange_LDADD = $(PMIX_LIBS)

mp_programs += tests/mp/upcalls
tests_mp_upcalls_SOURCES = tests/mp/upcalls.c
tests_mp_upcalls_LDADD = $(PMIX_LIBS)

mp_programs += tests/mp/huge
tests_mp_huge_SOURCES = tests/mp/huge.c tests/mp/window.h tests/mp/check.h
tests_mp_huge_LDADD = $(MP_LIBS)

mp_programs += tests/mp/signals
tests_mp_signals_SOURCES = tests/mp/signals.c tests/mp/window.h tests/mp/check.h
tests_mp_signals_LDADD = $(MP_LIBS)

# Sees hidden symbols.
mp_programs += tests/mp/keys
tests_mp_keys_SOURCES = tests/mp/keys.c
tests_mp_keys_LDADD = $(CORE_LIBS)

mp_programs += tests/mp/ten
tests_mp_ten_SOURCES = tests/mp/ten.c tests/mp/check.h
tests_mp_ten_LDADD = $(CORE_LIBS)

mp_programs += tests/mp/life
tests_mp_life_SOURCES = tests/mp/life.c
tests_mp_life_LDADD = $(MP_LIBS)

mp_programs += tests/mp/lifecycle
tests_mp_lifecycle_SOURCES = tests/mp/lifecycle.c tests/mp/check.h
tests_mp_lifecycle_LDADD = $(MP_LIBS)

mp_programs += tests/mp/memory
tests_mp_memory_SOURCES = tests/mp/memory.c
tests_mp_memory_LDADD = $(MP_LIBS) $(PMIX_LIBS)

mp_programs += tests/mp/names
tests_mp_names_SOURCES = tests/mp/names.c
tests_mp_names_LDADD = $(PMIX_LIBS)

mp_programs += tests/mp/no_memory
tests_mp_no_memory_SOURCES = tests/mp/no_memory.c tests/mp/check.h
tests_mp_no_memory_LDADD = $(MP_LIBS)

mp_programs += tests/mp/p2p
tests_mp_p2p_SOURCES = tests/mp/p2p.c tests/mp/check.h
tests_mp_p2p_LDADD = $(MP_LIBS)

mp_programs += tests/mp/profile
tests_mp_profile_SOURCES = tests/mp/profile.c tests/mp/check.h
tests_mp_profile_LDADD = $(MP_LIBS)

mp_programs += tests/mp/requests
tests_mp_requests_SOURCES = tests/mp/requests.c tests/mp/check.h
tests_mp_requests_LDADD = $(MP_LIBS)

mp_programs += tests/mp/surroundings
tests_mp_surroundings_SOURCES = tests/mp/surroundings.c

mp_programs += tests/mp/threads
tests_mp_threads_SOURCES = tests/mp/threads.c tests/mp/check.h
tests_mp_threads_LDADD = $(MP_LIBS)

script_tests += tests/check.t tests/coll.t tests/comm.t tests/examples.t tests/heat.t tests/p2p.t tests/window.t
plain_script_tests += tests/exports.t

mp_programs += tests/mp/window
tests_mp_window_SOURCES = tests/mp/window.c tests/mp/window.h tests/mp/check.h
tests_mp_window_LDADD = $(MP_LIBS)

mp_programs += tests/mp/window_atomics
tests_mp_window_atomics_SOURCES = tests/mp/window_atomics.c tests/mp/window.h tests/mp/check.h
tests_mp_window_atomics_LDADD = $(MP_LIBS)

mp_programs += tests/mp/window_forms
tests_mp_window_forms_SOURCES = tests/mp/window_forms.c tests/mp/window.h tests/mp/check.h
tests_mp_window_forms_LDADD = $(MP_LIBS)

mp_programs += tests/mp/window_epochs
tests_mp_window_epochs_SOURCES = tests/mp/window_epochs.c tests/mp/window.h tests/mp/check.h
tests_mp_window_epochs_LDADD = $(MP_LIBS)

mp_programs += tests/mp/spawn
tests_mp_spawn_SOURCES = tests/mp/spawn.c
tests_mp_spawn_LDADD = $(PMIX_LIBS)
