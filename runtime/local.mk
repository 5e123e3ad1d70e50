libncclx_core_la_SOURCES += \
	runtime/api.c runtime/api.h \
	runtime/collectives.c runtime/collectives.h \
	runtime/collectives_blocks.c \
	runtime/collectives_check.c \
	runtime/comm.c \
	runtime/comm_create.c \
	runtime/debugger.c runtime/debugger.h \
	runtime/errhandler.c \
	runtime/group.c runtime/group.h \
	runtime/group_api.c \
	runtime/handles.c runtime/handles.h \
	runtime/init.c \
	runtime/objects.c \
	runtime/p2p.c \
	runtime/requests.c \
	runtime/runtime.h \
	runtime/group_tree.h \
	runtime/split_core.c runtime/split_core.h \
	runtime/windows.c \
	runtime/windows_atomics.c \
	runtime/windows_plans.c \
	runtime/windows_signals.c \
	runtime/windows_sync.c

include_HEADERS = runtime/ncclx.h
EXTRA_DIST += runtime/ncclx.map runtime/ncclx.pc.in runtime/ncclxcc.in

# What is installed finds its neighbours by relative paths, so that the installed tree can be moved. What libncclx.a needs is named itself: the
# libraries behind it are shared ones, and with Requires.private theirs would be asked for, too, which have no development files here.
from = realpath -m --relative-to
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = runtime/ncclx.pc
runtime/ncclx.pc: runtime/ncclx.pc.in Makefile
	$(AM_V_GEN)mkdir -p runtime && sed \
	  -e "s|@PREFIX@|$$($(from)=$(pkgconfigdir) $(prefix))|" \
	  -e "s|@LIBDIR@|$$($(from)=$(prefix) $(libdir))|" \
	  -e "s|@INCLUDEDIR@|$$($(from)=$(prefix) $(includedir))|" \
	  -e "s|@PRIVATE_LIBS@|$(strip $(PMIX_LIBS) $(HWLOC_LIBS)) -lm -lpthread|" \
	  -e "s|@RELEASE@|$(VERSION)|" $(srcdir)/runtime/ncclx.pc.in >$@
CLEANFILES += runtime/ncclx.pc

# Two pairs of compiler wrappers: in the build folder for this build, and those that are installed.
wrapper = mkdir -p $(@D) && sed -e 's|@NAME@|$(@F)|' -e "s|@RELEASE@|$(VERSION)|" -e 's|@FLAGS@|$(SANITIZE_CFLAGS)|'
wrapper_cc = -e 's|@COMPILER@|$(CC)|' -e 's|@VARIABLE@|NCCLX_CC|'
wrapper_cxx = -e 's|@COMPILER@|$(CXX)|' -e 's|@VARIABLE@|NCCLX_CXX|'
wrapper_here = -e "s|@INCLUDEDIR@|$$($(from)=runtime $(srcdir)/runtime)|" -e 's|@LIBDIR@|../.libs|'
wrapper_installed = -e "s|@INCLUDEDIR@|$$($(from)=$(bindir) $(includedir))|" -e "s|@LIBDIR@|$$($(from)=$(bindir) $(libdir))|"
wrapper_end = $(srcdir)/runtime/ncclxcc.in >$@.new && chmod +x $@.new && mv $@.new $@
runtime/ncclxcc: runtime/ncclxcc.in Makefile
	$(AM_V_GEN)$(wrapper) $(wrapper_cc) $(wrapper_here) $(wrapper_end)
runtime/ncclxcxx: runtime/ncclxcc.in Makefile
	$(AM_V_GEN)$(wrapper) $(wrapper_cxx) $(wrapper_here) $(wrapper_end)
runtime/installed/ncclxcc: runtime/ncclxcc.in Makefile
	$(AM_V_GEN)$(wrapper) $(wrapper_cc) $(wrapper_installed) $(wrapper_end)
runtime/installed/ncclxcxx: runtime/ncclxcc.in Makefile
	$(AM_V_GEN)$(wrapper) $(wrapper_cxx) $(wrapper_installed) $(wrapper_end)
noinst_SCRIPTS = runtime/ncclxcc runtime/ncclxcxx
bin_SCRIPTS += runtime/installed/ncclxcc runtime/installed/ncclxcxx
CLEANFILES += $(noinst_SCRIPTS) runtime/installed/ncclxcc runtime/installed/ncclxcxx

# An .la file names absolute folders, and would be the only part of the installed tree that cannot be moved.
# The static library becomes one object in which only public names are global: no name of ours may meet a program's.
static_installed = $(DESTDIR)$(libdir)/libncclx.a
static_object = libncclx-static.o
install-exec-hook:
	rm -f $(DESTDIR)$(libdir)/libncclx.la
	if test -f $(static_installed); then \
	  $(LD) -r -o $(static_object) --whole-archive $(static_installed) && $(OBJCOPY) --localize-hidden $(static_object) && \
	  rm -f $(static_installed) && $(AR) cr $(static_installed) $(static_object) && $(RANLIB) $(static_installed) && \
	  rm -f $(static_object); \
	fi
uninstall-local:
	rm -f $(DESTDIR)$(libdir)/libncclx.a $(DESTDIR)$(libdir)/libncclx.so*
