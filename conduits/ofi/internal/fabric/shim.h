// What package fabric asks of libfabric, for a caller that holds one lock for all calls
// on one endpoint. Operations are named by numbers of contexts, which lie in C memory.
#ifndef ARGON_FABRIC_SHIM_H
#define ARGON_FABRIC_SHIM_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

// argon_context is what libfabric keeps of an operation, and its number. A provider
// with FI_CONTEXT or FI_CONTEXT2 writes to fi.
struct argon_context {
	struct fi_context2 fi;
	uint32_t number;
	uint32_t chunk;
};

// argon_chunk is contexts that were made together, each with a buffer of size bytes
// unless that is 0.
struct argon_chunk {
	struct argon_context *contexts;
	char *buffers;
	size_t size;
	uint32_t first, count;
	struct fid_mr *mr; // with FI_MR_LOCAL
	void *desc;
};

// argon_post_entry is an operation to be posted: the kinds are those of package fabric.
struct argon_post_entry {
	uint32_t kind, context;
	uint64_t peer, local, len, remote, key, desc;
};

#define FABRIC_NO_CONTEXT 0xffffffffu

enum { FABRIC_RECV, FABRIC_SEND, FABRIC_INJECT, FABRIC_WRITE, FABRIC_READ };

// argon_done is an operation that is over; err is 0 or an error number of libfabric.
struct argon_done {
	uint32_t context;
	int32_t err, provider;
	uint32_t len;
};

enum { FABRIC_BATCH = 64 }; // operations that one call posts or takes at most

struct argon_endpoint {
	const struct fi_info *info; // the caller's
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	int delivery; // writes are over when their data is in place
	int fd; // of the completion queue, the library's; -1 if it has none
	struct argon_chunk *chunks;
	uint32_t nchunks, ncontexts;
	struct fid_mr **regions; // NULL where one is closed
	uint32_t nregions;
	uint64_t keys; // asked for, never the same twice

	// What argon_post and argon_poll take and return: they are called for every message,
	// and cgo looks up each pointer that is passed.
	int32_t err;
	struct argon_post_entry ops[FABRIC_BATCH];
	struct argon_done done[FABRIC_BATCH];
};

enum { FABRIC_RAW = 64 }; // most bytes of a raw key

// argon_info finds the provider of that name that keeps an order and can report operations
// by completion, at a local address if node is not empty, and in a domain if that is not.
static inline int argon_info(const char *provider, const char *node, const char *domain, uint64_t order, uint64_t completion, struct fi_info **info)
{
	struct fi_info *hints = fi_allocinfo();
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	hints->caps = FI_MSG | FI_RMA; // FI_ATOMIC would cost the order of messages after writes
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = order;
	hints->rx_attr->msg_order = order;
	hints->tx_attr->op_flags = completion;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT | FI_MR_RAW;
	hints->fabric_attr->prov_name = strdup(provider);
	if (*domain)
		hints->domain_attr->name = strdup(domain);
	ret = fi_getinfo(FI_VERSION(1, 17), *node ? node : NULL, NULL, *node ? FI_SOURCE : 0, hints, info);
	fi_freeinfo(hints);
	return ret;
}

// argon_cut closes the endpoint of e and the memory that is registered: 0 if it is closed.
static inline int argon_cut(struct argon_endpoint *e)
{
	int ret;

	// Some providers refuse to close an endpoint with memory bound to it, others memory
	// that an endpoint may access.
	ret = e->ep ? fi_close(&e->ep->fid) : 0;
	if (!ret)
		e->ep = NULL;
	for (uint32_t i = 0; i < e->nregions; i++)
		if (e->regions[i] && !fi_close(&e->regions[i]->fid))
			e->regions[i] = NULL;
	for (uint32_t i = 0; i < e->nchunks; i++)
		if (e->chunks[i].mr && !fi_close(&e->chunks[i].mr->fid))
			e->chunks[i].mr = NULL;
	if (ret && !(ret = fi_close(&e->ep->fid)))
		e->ep = NULL;
	return ret;
}

// argon_close frees e: 0 if it is closed. Else it may still write to memory, and its
// buffers are lost with it.
static inline int argon_close(struct argon_endpoint *e)
{
	int ret = argon_cut(e);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < e->nchunks; i++) {
		free(e->chunks[i].contexts);
		free(e->chunks[i].buffers);
	}
	if (e->cq)
		fi_close(&e->cq->fid);
	if (e->av)
		fi_close(&e->av->fid);
	if (e->domain)
		fi_close(&e->domain->fid);
	if (e->fabric)
		fi_close(&e->fabric->fid);
	free(e->chunks);
	free(e->regions);
	free(e);
	return 0;
}

// argon_open makes an endpoint of info, which stays the caller's and unchanged. On failure
// what says which call failed.
static inline struct argon_endpoint *argon_open(struct fi_info *info, int delivery, size_t entries, int *err, const char **what)
{
	struct argon_endpoint *e = calloc(1, sizeof *e);
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .size = entries, .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD };

	*what = "calloc";
	*err = -FI_ENOMEM;
	if (!e)
		return NULL;
	e->info = info;
	e->delivery = delivery;
	e->fd = -1;
	*what = "fi_fabric";
	if ((*err = fi_fabric(info->fabric_attr, &e->fabric, NULL)))
		goto failed;
	*what = "fi_domain";
	if ((*err = fi_domain(e->fabric, info, &e->domain, NULL)))
		goto failed;
	*what = "fi_av_open";
	if ((*err = fi_av_open(e->domain, &av, &e->av, NULL)))
		goto failed;
	*what = "fi_cq_open";
	if (fi_cq_open(e->domain, &cq, &e->cq, NULL)) {
		cq.wait_obj = FI_WAIT_NONE; // no descriptor to wait on
		if ((*err = fi_cq_open(e->domain, &cq, &e->cq, NULL)))
			goto failed;
	} else if (fi_control(&e->cq->fid, FI_GETWAIT, &e->fd)) {
		e->fd = -1;
	}
	*what = "fi_endpoint";
	if ((*err = fi_endpoint(e->domain, info, &e->ep, NULL)))
		goto failed;
	*what = "fi_ep_bind";
	if ((*err = fi_ep_bind(e->ep, &e->av->fid, 0)))
		goto failed;
	if ((*err = fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV)))
		goto failed;
	*what = "fi_enable";
	if ((*err = fi_enable(e->ep)))
		goto failed;
	return e;
failed:
	argon_close(e);
	return NULL;
}

// argon_grow makes count more contexts with buffers of size bytes, and returns their
// first number; -1 and an error number if it cannot.
static inline int64_t argon_grow(struct argon_endpoint *e, uint32_t count, size_t size, char **buffers, int *err)
{
	struct argon_chunk *all, *c;

	*err = -FI_EOPBADSTATE;
	if (!e->ep)
		return -1; // it was cut
	*err = -FI_ENOMEM;
	all = realloc(e->chunks, (e->nchunks + 1) * sizeof *all);
	if (!all)
		return -1;
	e->chunks = all;
	c = &all[e->nchunks];
	memset(c, 0, sizeof *c);
	c->size = size;
	c->first = e->ncontexts;
	c->count = count;
	c->contexts = calloc(count, sizeof *c->contexts);
	if (size && posix_memalign((void **)&c->buffers, 4096, size * count))
		c->buffers = NULL;
	if (!c->contexts || (size && !c->buffers))
		goto failed;
	if (size && (e->info->domain_attr->mr_mode & FI_MR_LOCAL)) {
		*err = fi_mr_reg(e->domain, c->buffers, size * count, FI_SEND | FI_RECV, 0, (1ull << 32) + e->nchunks, 0, &c->mr, NULL);
		if (!*err && (e->info->domain_attr->mr_mode & FI_MR_ENDPOINT)) {
			*err = fi_mr_bind(c->mr, &e->ep->fid, 0);
			if (!*err)
				*err = fi_mr_enable(c->mr);
		}
		if (*err)
			goto failed;
		c->desc = fi_mr_desc(c->mr);
	}
	for (uint32_t i = 0; i < count; i++) {
		c->contexts[i].number = c->first + i;
		c->contexts[i].chunk = e->nchunks;
	}
	*buffers = c->buffers;
	e->nchunks++;
	e->ncontexts += count;
	*err = 0;
	return c->first;
failed:
	if (c->mr)
		fi_close(&c->mr->fid);
	free(c->contexts);
	free(c->buffers);
	return -1;
}

static inline struct argon_context *argon_at(struct argon_endpoint *e, uint32_t number, char **buffer, void **desc)
{
	for (uint32_t i = 0; i < e->nchunks; i++) { // a few chunks, each twice the last
		struct argon_chunk *c = &e->chunks[i];
		if (number - c->first < c->count) {
			*buffer = c->buffers + (number - c->first) * c->size;
			*desc = c->desc;
			return &c->contexts[number - c->first];
		}
	}
	return NULL;
}

static inline ssize_t argon_post_one(struct argon_endpoint *e, const struct argon_post_entry *p)
{
	char *buffer;
	void *desc;
	struct argon_context *c = argon_at(e, p->context, &buffer, &desc);

	switch (p->kind) {
	case FABRIC_RECV:
		return fi_recv(e->ep, buffer, p->len, desc, FI_ADDR_UNSPEC, &c->fi);
	case FABRIC_SEND:
		return fi_send(e->ep, buffer, p->len, desc, p->peer, &c->fi);
	case FABRIC_INJECT:
		return fi_inject(e->ep, buffer, p->len, p->peer);
	case FABRIC_READ:
		return fi_read(e->ep, (void *)(uintptr_t)p->local, p->len, (void *)(uintptr_t)p->desc, p->peer, p->remote, p->key, &c->fi);
	default: {
		struct iovec local = { (void *)(uintptr_t)p->local, p->len };
		void *mr = (void *)(uintptr_t)p->desc;
		struct fi_rma_iov there = { p->remote, p->len, p->key };
		struct fi_msg_rma m = {
			.msg_iov = &local, .desc = &mr, .iov_count = 1, .addr = p->peer,
			.rma_iov = &there, .rma_iov_count = 1, .context = &c->fi,
		};
		return fi_writemsg(e->ep, &m, FI_COMPLETION | (e->delivery ? FI_DELIVERY_COMPLETE : 0));
	}
	}
}

// argon_post posts the first n of ops in order and returns how many it has. err says why the
// next one was not: 0 if there is none, -FI_EAGAIN if it may be later.
static inline uint32_t argon_post(uintptr_t endpoint, uint32_t n)
{
	struct argon_endpoint *e = (struct argon_endpoint *)endpoint;

	e->err = e->ep ? 0 : -FI_EOPBADSTATE;
	for (uint32_t i = 0; i < n && e->ep; i++) {
		ssize_t ret = argon_post_one(e, &e->ops[i]);
		if (ret) {
			e->err = (int32_t)ret;
			return i;
		}
	}
	return e->ep ? n : 0;
}

// argon_poll takes up to n operations that are over, to done.
static inline uint32_t argon_poll(uintptr_t endpoint, uint32_t n)
{
	struct argon_endpoint *e = (struct argon_endpoint *)endpoint;
	struct argon_done *d = e->done;
	struct fi_cq_msg_entry some[FABRIC_BATCH];
	struct fi_cq_err_entry bad;
	uint32_t got = 0;

	e->err = 0;
	while (got < n && e->ep) { // some providers crash in the queue of an endpoint that is closed
		ssize_t ret = fi_cq_read(e->cq, some, n - got);
		if (ret > 0) {
			uint32_t want = n - got;
			for (ssize_t i = 0; i < ret; i++) {
				d[got].context = ((struct argon_context *)some[i].op_context)->number;
				d[got].err = d[got].provider = 0;
				d[got++].len = (uint32_t)some[i].len;
			}
			if ((uint32_t)ret < want)
				break;
			continue;
		}
		if (ret == -FI_EAGAIN || ret == 0)
			break;
		if (ret != -FI_EAVAIL) {
			e->err = (int32_t)ret;
			break;
		}
		memset(&bad, 0, sizeof bad);
		ret = fi_cq_readerr(e->cq, &bad, 0);
		if (ret != 1) {
			if (ret != -FI_EAGAIN)
				e->err = (int32_t)ret;
			break;
		}
		d[got].context = bad.op_context ? ((struct argon_context *)bad.op_context)->number : FABRIC_NO_CONTEXT;
		d[got].err = bad.err ? bad.err : FI_EOTHER;
		d[got].provider = bad.prov_errno;
		d[got++].len = 0;
	}
	return got;
}

// argon_region is what a registration is known by: its number, the key of peers, which is
// raw bytes with FI_MR_RAW, and the descriptor of local accesses.
struct argon_region {
	uint64_t key, base, desc;
	uint32_t number, raw;
	uint8_t bytes[FABRIC_RAW];
};

// argon_register registers memory. It returns 0 or an error number.
static inline int argon_register(struct argon_endpoint *e, void *base, size_t len, uint64_t access, struct argon_region *r)
{
	uint64_t mode = e->info->domain_attr->mr_mode;
	struct fid_mr *mr;
	uint32_t i = 0;
	size_t size = sizeof r->bytes;
	int ret;

	if (!e->ep)
		return -FI_EOPBADSTATE; // it was cut
	while (i < e->nregions && e->regions[i])
		i++;
	if (i == e->nregions) {
		struct fid_mr **all = realloc(e->regions, (2 * i + 8) * sizeof *all);
		if (!all)
			return -FI_ENOMEM;
		memset(all + i, 0, (i + 8) * sizeof *all);
		e->regions = all;
		e->nregions = 2 * i + 8;
	}
	ret = fi_mr_reg(e->domain, base, len, access, 0, ++e->keys, 0, &mr, NULL);
	if (ret)
		return ret;
	if ((mode & FI_MR_ENDPOINT) && ((ret = fi_mr_bind(mr, &e->ep->fid, 0)) || (ret = fi_mr_enable(mr))))
		goto failed;
	r->key = fi_mr_key(mr);
	r->desc = (uint64_t)(uintptr_t)fi_mr_desc(mr);
	r->base = mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)base : 0;
	r->raw = 0;
	if (mode & FI_MR_RAW) {
		if ((ret = fi_mr_raw_attr(mr, &r->base, r->bytes, &size, 0)))
			goto failed;
		r->raw = (uint32_t)size;
	}
	r->number = i;
	e->regions[i] = mr;
	return 0;
failed:
	fi_close(&mr->fid);
	return ret;
}

// argon_deregister ends a registration.
static inline int argon_deregister(struct argon_endpoint *e, uint32_t number)
{
	struct fid_mr *mr = e->regions[number];

	e->regions[number] = NULL;
	return mr ? fi_close(&mr->fid) : 0; // argon_cut may have closed it
}

// argon_map makes a key of raw bytes one that operations take.
static inline int argon_map(struct argon_endpoint *e, uint64_t base, const void *raw, size_t size, uint64_t *key)
{
	return fi_mr_map_raw(e->domain, base, (uint8_t *)(uintptr_t)raw, size, key, 0);
}

static inline int argon_unmap(struct argon_endpoint *e, uint64_t key)
{
	return fi_mr_unmap_key(e->domain, key);
}

// argon_copy is a copy of n bytes at an address, and argon_drop its end.
static inline uint64_t argon_copy(uint64_t at, size_t n)
{
	void *p = malloc(n);

	if (p)
		memcpy(p, (void *)(uintptr_t)at, n);
	return (uint64_t)(uintptr_t)p;
}

static inline void argon_drop(uint64_t at)
{
	free((void *)(uintptr_t)at);
}

static inline int argon_insert(struct argon_endpoint *e, const void *addr, uint64_t *peer)
{
	fi_addr_t a;
	int ret = fi_av_insert(e->av, addr, 1, &a, 0, NULL);

	*peer = a;
	return ret == 1 ? 0 : ret < 0 ? ret : -FI_EINVAL;
}

static inline int argon_name(struct argon_endpoint *e, void *addr, size_t *len)
{
	return fi_getname(&e->ep->fid, addr, len);
}

// argon_trywait is 0 if the descriptor will become readable for what comes next.
static inline int argon_trywait(struct argon_endpoint *e)
{
	struct fid *f = &e->cq->fid;

	if (!e->ep)
		return 0;
	return fi_trywait(e->fabric, &f, 1);
}

static inline const char *argon_cq_text(struct argon_endpoint *e, int provider, char *buf, size_t len)
{
	return fi_cq_strerror(e->cq, provider, NULL, buf, len);
}

#endif
