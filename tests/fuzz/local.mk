# Fuzzers, one for each kind of parser. `make check` runs each over its corpus and 20000 fixed changes of it. To search on, guided by coverage:
#     ../configure CC=clang --disable-static --enable-sanitizers=address,undefined,fuzzer-no-link
#     make fuzz FUZZER=config && ./fuzz found ../tests/fuzz/corpus/config
FUZZ_DRIVER = tests/fuzz/driver.c tests/fuzz/fuzz.h
fuzz_tests = tests/fuzz/cards tests/fuzz/command_line tests/fuzz/config tests/fuzz/frames tests/fuzz/hosts tests/fuzz/kvx tests/fuzz/lanes tests/fuzz/lists tests/fuzz/matrix tests/fuzz/notices tests/fuzz/oob tests/fuzz/packets tests/fuzz/tcp_card tests/fuzz/tree tests/fuzz/window
tests_fuzz_cards_SOURCES = tests/fuzz/cards.c tests/unit/pml_world.c tests/unit/pml_world.h $(FUZZ_DRIVER)
tests_fuzz_cards_LDADD = $(CORE_LIBS)
tests_fuzz_command_line_SOURCES = tests/fuzz/command_line.c $(FUZZ_DRIVER)
tests_fuzz_command_line_LDADD = launcher/liblauncher.la $(CORE_LIBS)
tests_fuzz_config_SOURCES = tests/fuzz/config.c $(FUZZ_DRIVER)
tests_fuzz_config_LDADD = $(CORE_LIBS)
tests_fuzz_frames_SOURCES = tests/fuzz/frames.c $(FUZZ_DRIVER)
tests_fuzz_frames_LDADD = launcher/liblauncher.la $(CORE_LIBS)
tests_fuzz_hosts_SOURCES = tests/fuzz/hosts.c $(FUZZ_DRIVER)
tests_fuzz_hosts_LDADD = launcher/liblauncher.la $(CORE_LIBS)
tests_fuzz_kvx_SOURCES = tests/fuzz/kvx.c $(FUZZ_DRIVER)
tests_fuzz_kvx_LDADD = bootstrap/libkvx.la $(CORE_LIBS)
tests_fuzz_lanes_SOURCES = tests/fuzz/lanes.c $(TCP_WORLD) $(FUZZ_DRIVER)
tests_fuzz_lanes_LDADD = $(CORE_LIBS)
tests_fuzz_lists_SOURCES = tests/fuzz/lists.c $(FUZZ_DRIVER)
tests_fuzz_lists_LDADD = $(CORE_LIBS)
tests_fuzz_matrix_SOURCES = tests/fuzz/matrix.c examples/matrix_market.c examples/matrix_market.h $(FUZZ_DRIVER)
tests_fuzz_notices_SOURCES = tests/fuzz/notices.c launcher/server_jobs.c launcher/server_notices.c $(FUZZ_DRIVER)
tests_fuzz_notices_LDADD = launcher/liblauncher.la $(CORE_LIBS)
tests_fuzz_oob_SOURCES = tests/fuzz/oob.c $(FUZZ_DRIVER)
tests_fuzz_oob_LDADD = $(CORE_LIBS)
tests_fuzz_packets_SOURCES = tests/fuzz/packets.c tests/unit/pml_world.c tests/unit/pml_world.h $(FUZZ_DRIVER)
tests_fuzz_packets_LDADD = $(CORE_LIBS)
tests_fuzz_tcp_card_SOURCES = tests/fuzz/tcp_card.c $(FUZZ_DRIVER)
tests_fuzz_tcp_card_LDADD = $(CORE_LIBS)
tests_fuzz_tree_SOURCES = tests/fuzz/tree.c $(FUZZ_DRIVER)
tests_fuzz_tree_LDADD = launcher/liblauncher.la $(CORE_LIBS)
tests_fuzz_window_SOURCES = tests/fuzz/window.c tests/unit/pml_standin.c tests/unit/pml_standin.h $(FUZZ_DRIVER)
tests_fuzz_window_LDADD = $(CORE_LIBS)
EXTRA_DIST += tests/fuzz/corpus

fuzz: libncclx_core.la launcher/liblauncher.la bootstrap/libkvx.la
	$(AM_V_at)$(MAKE) tests/fuzz/$(FUZZER).$(OBJEXT)
	$(AM_V_CCLD)$(LINK) -fsanitize=fuzzer tests/fuzz/$(FUZZER).$(OBJEXT) launcher/liblauncher.la bootstrap/libkvx.la $(CORE_LIBS)
.PHONY: fuzz
