//go:build ofi && cgo

#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <string.h>

// argon_evict takes away the handlers that constructors of libraries have installed which
// are known to. It is a constructor itself: those of the program run after those of
// the libraries, and before Go's runtime begins. Other libraries' are left alone: a
// program in C that Go is a part of may have its own.
__attribute__((constructor)) static void argon_evict(void)
{
	static const char *const known[] = {"/libinfinipath.so", "/libpsm2.so"};
	struct sigaction a;
	Dl_info from;

	for (int s = 1; s < 65; s++) {
		if (sigaction(s, NULL, &a) != 0 || a.sa_handler == SIG_DFL || a.sa_handler == SIG_IGN)
			continue;
		if (!dladdr((void *)a.sa_sigaction, &from) || !from.dli_fname)
			continue;
		for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
			if (strstr(from.dli_fname, known[i]))
				signal(s, SIG_DFL);
	}
}
