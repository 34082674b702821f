// What a program in C does on one endpoint of libfabric: the references ref/ofi,
// ref/ofiwrite and ref/ofimsg. One thread uses it. Messages of both ranks alternate or are
// counted, so that none runs ahead of the receives: providers over TCP do not refuse
// what has no receive, they keep it.
#ifndef GASBENCH_BARE_H
#define GASBENCH_BARE_H

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

enum {
	BARE_SLOTS = 1024, // receives
	BARE_SLOT = 4096,  // bytes of one: the longest message
	BARE_WINDOW = 512, // messages of a flood on their way
	BARE_TELL = 64,    // the receiver of a flood tells of so many
	BARE_LOOKS = 1024, // looks at an empty queue before the caller is asked
	BARE_KEY = 1,      // of the memory that the other rank writes to
};

struct bare {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr, *mr_far;
	void *desc;
	struct fi_context2 contexts[BARE_SLOTS], send_context, write_context;
	char *slots, *out, *far; // received; what is sent and written; what the other rank writes to
	size_t size;             // bytes of out and far
	fi_addr_t peer;
	uint64_t far_base, far_key; // of the other rank
	// Completions so far, of each kind, and what was posted.
	uint64_t received, sends, written, sent, writes;
	// What the first word of the last message says, and of the flood how much that is of
	// what has been poured.
	uint64_t word, poured, heard;
	uint64_t caught, answered;
	int waiting; // a ping is under way
	const char *doing;
	char text[256]; // of the last error
};

static inline int bare_failed(struct bare *b, const char *what, long rc)
{
	if (!b->text[0])
		snprintf(b->text, sizeof b->text, "%s: %s", what, fi_strerror((int)-rc));
	return -1;
}

static inline int bare_receive(struct bare *b, unsigned i)
{
	ssize_t rc;

	while ((rc = fi_recv(b->ep, b->slots + (size_t)i * BARE_SLOT, BARE_SLOT, b->desc, FI_ADDR_UNSPEC, &b->contexts[i])) == -FI_EAGAIN)
		fi_cq_read(b->cq, NULL, 0);
	return rc ? bare_failed(b, "fi_recv", rc) : 0;
}

// bare_poll takes completions; it returns how many, or -1.
static inline int bare_poll(struct bare *b)
{
	struct fi_cq_msg_entry e[16];
	ssize_t n = fi_cq_read(b->cq, e, 16);

	if (n == -FI_EAGAIN)
		return 0;
	if (n < 0) {
		struct fi_cq_err_entry err = {0};

		if (n != -FI_EAVAIL || fi_cq_readerr(b->cq, &err, 0) < 1)
			return bare_failed(b, "fi_cq_read", n);
		return bare_failed(b, "a completion", -err.err);
	}
	for (ssize_t i = 0; i < n; i++) {
		if (e[i].flags & FI_RECV) {
			unsigned slot = (unsigned)((struct fi_context2 *)e[i].op_context - b->contexts);

			memcpy(&b->word, b->slots + (size_t)slot * BARE_SLOT, 8);
			b->received++;
			if (bare_receive(b, slot))
				return -1;
		} else if (e[i].flags & FI_WRITE) {
			b->written++;
		} else {
			b->sends++;
		}
	}
	return (int)n;
}

// bare_send sends size bytes, the first word of which is word.
static inline int bare_send(struct bare *b, uint64_t word, size_t size)
{
	ssize_t rc;

	if (size > b->info->tx_attr->inject_size)
		while (b->sends < b->sent) // out is still read
			if (bare_poll(b) < 0)
				return -1;
	memcpy(b->out, &word, 8);
	for (;;) {
		if (size <= b->info->tx_attr->inject_size) {
			rc = fi_inject(b->ep, b->out, size, b->peer);
		} else {
			rc = fi_send(b->ep, b->out, size, b->desc, b->peer, &b->send_context);
			b->sent += rc == 0;
		}
		if (rc != -FI_EAGAIN)
			return rc ? bare_failed(b, "a send", rc) : 0;
		if (bare_poll(b) < 0)
			return -1;
	}
}

// bare_await polls until a counter has reached count: 1, or 0 if nothing comes for a
// while, or -1.
static inline int bare_await(struct bare *b, const uint64_t *counter, uint64_t count)
{
	for (unsigned looks = 0; *counter < count;) {
		int n = bare_poll(b);

		if (n < 0)
			return -1;
		looks = n ? 0 : looks + 1;
		if (looks == BARE_LOOKS)
			return 0;
	}
	return 1;
}

// bare_ping does *left rounds of a ping-pong; like those that follow it returns 1 if all is
// done, 0 to be called again, or -1.
static inline int bare_ping(struct bare *b, uint64_t *left, size_t size)
{
	for (; *left; (*left)--) {
		int r;

		if (!b->waiting) {
			if (bare_send(b, 0, size))
				return -1;
			b->waiting = 1;
		}
		if ((r = bare_await(b, &b->received, b->answered + 1)) != 1)
			return r;
		b->waiting = 0;
		b->answered++;
	}
	return 1;
}

static inline int bare_pong(struct bare *b, uint64_t *left, size_t size)
{
	for (; *left; (*left)--) {
		int r = bare_await(b, &b->received, b->answered + 1);

		if (r != 1)
			return r;
		b->answered++;
		if (bare_send(b, 0, size))
			return -1;
	}
	return 1;
}

// bare_write writes *left times size bytes, each when the one before is in the other
// rank's memory.
static inline int bare_write(struct bare *b, uint64_t *left, size_t size)
{
	struct iovec iov = {.iov_base = b->out, .iov_len = size};
	struct fi_rma_iov to = {.addr = b->far_base, .len = size, .key = b->far_key};
	struct fi_msg_rma m = {
		.msg_iov = &iov, .desc = &b->desc, .iov_count = 1, .addr = b->peer,
		.rma_iov = &to, .rma_iov_count = 1, .context = &b->write_context,
	};

	for (; *left; (*left)--) {
		int r;

		while (b->writes == b->written) {
			ssize_t rc = fi_writemsg(b->ep, &m, FI_DELIVERY_COMPLETE);

			if (rc == 0)
				b->writes++;
			else if (rc != -FI_EAGAIN)
				return bare_failed(b, "fi_writemsg", rc);
			else if (bare_poll(b) < 0)
				return -1;
		}
		if ((r = bare_await(b, &b->written, b->writes)) != 1)
			return r;
	}
	return 1;
}

// bare_serve lets the provider work until a message comes.
static inline int bare_serve(struct bare *b)
{
	int r = bare_await(b, &b->received, b->answered + 1);

	b->answered += r == 1;
	return r;
}

// bare_pour sends *left messages of a flood. The last one asks for an answer.
static inline int bare_pour(struct bare *b, uint64_t *left, size_t size)
{
	for (; *left; (*left)--) {
		while (b->poured - b->heard >= BARE_WINDOW) {
			int r = bare_await(b, &b->received, b->answered + 1);

			if (r != 1)
				return r;
			b->answered = b->received;
			b->heard = b->word;
		}
		if (bare_send(b, *left == 1, size))
			return -1;
		b->poured++;
	}
	while (b->poured != b->heard) {
		int r = bare_await(b, &b->received, b->answered + 1);

		if (r != 1)
			return r;
		b->answered = b->received;
		b->heard = b->word;
	}
	return 1;
}

// bare_catch receives *left messages of a flood, one at a time as they complete.
static inline int bare_catch(struct bare *b, uint64_t *left)
{
	while (*left) {
		int r = bare_await(b, &b->received, b->answered + 1);
		uint64_t came = b->received - b->answered;

		if (r != 1)
			return r;
		b->answered += came;
		b->caught += came;
		*left -= came;
		if (b->word == 1 || b->caught - b->heard >= BARE_TELL) {
			b->heard = b->caught;
			if (bare_send(b, b->caught, 8))
				return -1;
		}
	}
	return 1;
}

static inline void bare_close(struct bare *b)
{
	if (b->ep)
		fi_close(&b->ep->fid);
	if (b->mr)
		fi_close(&b->mr->fid);
	if (b->mr_far)
		fi_close(&b->mr_far->fid);
	if (b->cq)
		fi_close(&b->cq->fid);
	if (b->av)
		fi_close(&b->av->fid);
	if (b->domain)
		fi_close(&b->domain->fid);
	if (b->fabric)
		fi_close(&b->fabric->fid);
	if (b->info)
		fi_freeinfo(b->info);
	free(b->slots);
	free(b);
}

static inline int bare_register(struct bare *b, void *p, size_t n, uint64_t access, uint64_t key, struct fid_mr **mr)
{
	int rc = fi_mr_reg(b->domain, p, n, access, 0, key, 0, mr, NULL);

	if (rc)
		return bare_failed(b, "fi_mr_reg", rc);
	if (b->info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
		if ((rc = fi_mr_bind(*mr, &b->ep->fid, 0)) || (rc = fi_mr_enable(*mr)))
			return bare_failed(b, "fi_mr_enable", rc);
	}
	return 0;
}

// bare_open opens an endpoint of a provider, on a domain, and at an address if that is not
// empty. What fails is told by bare_close after a look at text.
static inline int bare_open(struct bare *b, const char *provider, const char *domain, const char *address, size_t size)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq = {.size = 2 * BARE_SLOTS, .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	int rc;

	if (!hints)
		return bare_failed(b, "fi_allocinfo", -FI_ENOMEM);
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
	hints->fabric_attr->prov_name = strdup(provider);
	hints->domain_attr->name = strdup(domain);
	rc = fi_getinfo(FI_VERSION(1, 17), *address ? address : NULL, NULL, *address ? FI_SOURCE : 0, hints, &b->info);
	fi_freeinfo(hints);
	if (rc)
		return bare_failed(b, "fi_getinfo", rc);
	b->size = size;
	if (posix_memalign((void **)&b->slots, 4096, (size_t)BARE_SLOTS * BARE_SLOT + 2 * size))
		return bare_failed(b, "memory", -FI_ENOMEM);
	memset(b->slots, 0, (size_t)BARE_SLOTS * BARE_SLOT + 2 * size);
	b->out = b->slots + (size_t)BARE_SLOTS * BARE_SLOT;
	b->far = b->out + size;
	if ((rc = fi_fabric(b->info->fabric_attr, &b->fabric, NULL)) || (rc = fi_domain(b->fabric, b->info, &b->domain, NULL)) ||
	    (rc = fi_av_open(b->domain, &av, &b->av, NULL)) || (rc = fi_cq_open(b->domain, &cq, &b->cq, NULL)) ||
	    (rc = fi_endpoint(b->domain, b->info, &b->ep, NULL)) || (rc = fi_ep_bind(b->ep, &b->av->fid, 0)) ||
	    (rc = fi_ep_bind(b->ep, &b->cq->fid, FI_TRANSMIT | FI_RECV)) || (rc = fi_enable(b->ep)))
		return bare_failed(b, "opening an endpoint", rc);
	if (bare_register(b, b->far, size, FI_REMOTE_READ | FI_REMOTE_WRITE, BARE_KEY, &b->mr_far))
		return -1;
	if (b->info->domain_attr->mr_mode & FI_MR_LOCAL) {
		if (bare_register(b, b->slots, (size_t)BARE_SLOTS * BARE_SLOT + size, FI_SEND | FI_RECV | FI_READ | FI_WRITE, BARE_KEY + 1, &b->mr))
			return -1;
		b->desc = fi_mr_desc(b->mr);
	}
	for (unsigned i = 0; i < BARE_SLOTS && i < b->info->rx_attr->size; i++)
		if (bare_receive(b, i))
			return -1;
	return 0;
}

// bare_name writes the endpoint's address; it returns its length, or -1.
static inline int bare_name(struct bare *b, void *to, size_t room)
{
	int rc = fi_getname(&b->ep->fid, to, &room);

	return rc ? bare_failed(b, "fi_getname", rc) : (int)room;
}

static inline int bare_connect(struct bare *b, const void *address, uint64_t base, uint64_t key)
{
	int rc = fi_av_insert(b->av, address, 1, &b->peer, 0, NULL);

	b->far_base = base;
	b->far_key = key;
	return rc == 1 ? 0 : bare_failed(b, "fi_av_insert", rc < 0 ? rc : -FI_EINVAL);
}

// bare_base and bare_key are what the other rank calls far.
static inline uint64_t bare_base(struct bare *b)
{
	return b->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)b->far : 0;
}

static inline uint64_t bare_key(struct bare *b) { return fi_mr_key(b->mr_far); }

#endif
