#ifndef ARGON_GUEST_H
#define ARGON_GUEST_H

#include <signal.h>
#include <stdint.h>

// argon_handlers are the handlers of all signals that may have one.
struct argon_handlers {
	struct sigaction of[65];
	char known[65];
};

static inline void argon_save_handlers(struct argon_handlers *h)
{
	for (int s = 1; s < 65; s++)
		h->known[s] = sigaction(s, NULL, &h->of[s]) == 0;
}

// argon_restore_handlers puts back what has changed since argon_save_handlers, except by
// Go's runtime, whose handler SIGURG has, and returns a bit for each such signal.
static inline uint64_t argon_restore_handlers(const struct argon_handlers *h)
{
	uint64_t changed = 0;
	struct sigaction now;

	for (int s = 1; s < 65; s++) {
		if (!h->known[s] || sigaction(s, NULL, &now) != 0)
			continue;
		if (now.sa_sigaction == h->of[s].sa_sigaction && now.sa_flags == h->of[s].sa_flags)
			continue;
		if (now.sa_sigaction == h->of[SIGURG].sa_sigaction && now.sa_flags == h->of[SIGURG].sa_flags)
			continue;
		sigaction(s, &h->of[s], NULL);
		changed |= 1ull << (s - 1);
	}
	return changed;
}

#endif
