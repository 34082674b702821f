// A library that comes before libfabric (LD_PRELOAD), for tests: in the function that
// MEDDLE names it installs handlers of signals that end the process with status 77, and
// opens a descriptor that programs inherit, as a provider might.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

static void handler(int s)
{
	(void)s;
	_exit(77);
}

static void meddle(const char *where)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGTERM, SIGINT, SIGQUIT, SIGUSR1};
	struct sigaction a = {.sa_handler = handler};
	const char *m = getenv("MEDDLE");

	if (!m || strcmp(m, where))
		return;
	for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &a, NULL);
	eventfd(0, 0);
}

// domains and fabrics are tables of functions with one of them replaced.
struct domains {
	struct fi_ops_domain ops;
	struct fi_ops_domain *real;
};

struct fabrics {
	struct fi_ops_fabric ops;
	struct fi_ops_fabric *real;
};

static int my_endpoint(struct fid_domain *d, struct fi_info *info, struct fid_ep **ep, void *context)
{
	int ret = ((struct domains *)d->ops)->real->endpoint(d, info, ep, context);
	static int calls;

	if (!calls++) // net makes one for each connection, too
		meddle("endpoint");
	return ret;
}

static int my_domain(struct fid_fabric *f, struct fi_info *info, struct fid_domain **d, void *context)
{
	int ret = ((struct fabrics *)f->ops)->real->domain(f, info, d, context);
	struct domains *w = malloc(sizeof *w);

	if (!ret && w) {
		w->ops = *(*d)->ops;
		w->real = (*d)->ops;
		w->ops.endpoint = my_endpoint;
		(*d)->ops = &w->ops;
	}
	meddle("fi_domain");
	return ret;
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **f, void *context)
{
	int (*real)(struct fi_fabric_attr *, struct fid_fabric **, void *) = dlsym(RTLD_NEXT, "fi_fabric");
	int ret = real(attr, f, context);
	struct fabrics *w = malloc(sizeof *w);

	if (!ret && w) {
		w->ops = *(*f)->ops;
		w->real = (*f)->ops;
		w->ops.domain = my_domain;
		(*f)->ops = &w->ops;
	}
	meddle("fi_fabric");
	return ret;
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints, struct fi_info **info)
{
	int (*real)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **) = dlsym(RTLD_NEXT, "fi_getinfo");
	int ret = real(version, node, service, flags, hints, info);

	meddle("fi_getinfo");
	return ret;
}
