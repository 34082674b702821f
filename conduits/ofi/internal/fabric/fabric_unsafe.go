//go:build ofi && cgo

// Package fabric is argon's use of libfabric: endpoints of type FI_EP_RDM with messages
// and remote access, and one address vector and completion queue each.
//
// All calls of one Endpoint are made under a lock of the caller's (FI_THREAD_DOMAIN: each
// endpoint has a domain of its own). Operations are named by numbers of contexts that lie
// in C memory, as do the buffers of messages: no array of Go pointers is ever passed to
// C, and C calls nothing of Go's. Post and Poll, which are called for every message, take
// and return several operations at a time.
package fabric

/*
#cgo LDFLAGS: -lfabric
#cgo noescape argon_post
#cgo nocallback argon_post
#cgo noescape argon_poll
#cgo nocallback argon_poll
#cgo noescape argon_trywait
#cgo nocallback argon_trywait
#cgo noescape argon_insert
#cgo nocallback argon_insert
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"unsafe"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/guest"
	"github.com/argon-go/argon/internal/sys"
)

// A Kind is the kind of an operation.
type Kind uint32

// The kinds.
const (
	Recv   Kind = C.FABRIC_RECV   // into the buffer of its context
	Send   Kind = C.FABRIC_SEND   // from the buffer of its context
	Inject Kind = C.FABRIC_INJECT // Send that is over when it is posted; at most Properties.Inject bytes
	Write  Kind = C.FABRIC_WRITE  // from Local to Remote; over when the data is in place, with Properties.Delivery
	Read   Kind = C.FABRIC_READ   // from Remote to Local
)

// Op is an operation to be posted. Its layout is that of struct argon_post_entry.
type Op struct {
	Kind    Kind
	Context uint32
	Peer    uint64  // what Insert has returned; not of Recv
	Local   uintptr // of Write and Read: pinned, or no memory of Go
	Len     uint64
	Remote  uint64 // of Write and Read: Region.Base and an offset
	Key     uint64 // of Write and Read
	Desc    uint64 // of Write and Read, with MRLocal: Region.Desc of Local
}

// NoContext is the context of an injected Send that has failed: the library names none.
const NoContext = C.FABRIC_NO_CONTEXT

// Done is an operation that is over. Its layout is that of struct argon_done.
type Done struct {
	Context  uint32
	Err      int32 // 0, or a positive error number of libfabric
	Provider int32 // the provider's own, with Err
	Len      uint32
}

// The layouts are those of C.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(Op{})-C.sizeof_struct_argon_post_entry]
	_ = [1]struct{}{}[unsafe.Sizeof(Done{})-C.sizeof_struct_argon_done]
	_ = [1]struct{}{}[unsafe.Offsetof(Op{}.Desc)-unsafe.Offsetof(C.struct_argon_post_entry{}.desc)]
	_ = [1]struct{}{}[unsafe.Offsetof(Done{}.Len)-unsafe.Offsetof(C.struct_argon_done{}.len)]
)

// Properties are the library's answer to a request for a provider.
type Properties struct {
	Provider string // its name, such as tcp;ofi_rxm
	Version  string // of the library and of the provider
	Domain   string // the interface or card
	MR       uint64 // mr_mode
	Order    uint64 // msg_order of what is sent
	Delivery bool   // a Write that is over is in place (FI_DELIVERY_COMPLETE), else only Local is free
	Inject   int    // most bytes of an Inject
	Sends    int    // most operations under way that an endpoint is made for
	Receives int
	MaxMsg   uint64 // most bytes of an operation
	IP       bool   // addresses are those of IP, struct sockaddr_in or sockaddr_in6
	Manual   bool   // data moves only while the provider is called (FI_PROGRESS_MANUAL)
}

// Bits of Properties.MR and Properties.Order that callers ask for.
const (
	MRLocal     = C.FI_MR_LOCAL
	MRRaw       = C.FI_MR_RAW
	MRVirtAddr  = C.FI_MR_VIRT_ADDR
	MRAllocated = C.FI_MR_ALLOCATED
	OrderSAS    = C.FI_ORDER_SAS
	OrderSAW    = C.FI_ORDER_SAW
)

// asks are the orders and completions that a provider is asked for, in turn, until it has
// one: messages behind messages and behind writes, and writes that are over when their data
// is in place; or else one of these, or neither.
var asks = []struct{ order, completion uint64 }{
	{OrderSAS | OrderSAW, C.FI_DELIVERY_COMPLETE},
	{OrderSAS, C.FI_DELIVERY_COMPLETE},
	{0, C.FI_DELIVERY_COMPLETE},
	{OrderSAS | OrderSAW, 0},
	{OrderSAW, 0},
	{OrderSAS, 0},
	{0, 0},
}

// Info is a provider at one local address. It stays as long as the process does: the
// first question to the library takes 0.1 s, in which it loads providers, and each later one 0.5 to
// 1.5 ms.
type Info struct {
	Properties
	info *C.struct_fi_info
}

var infos struct {
	mu  sync.Mutex
	all map[[3]string]*Info
}

// Find finds the provider of that name, at the local address node (a name or an IP
// address) and in the domain of that name, or of the provider's choice if they are empty.
func Find(provider, node, domain string) (*Info, error) {
	infos.mu.Lock()
	defer infos.mu.Unlock()
	k := [3]string{provider, node, domain}
	if i := infos.all[k]; i != nil {
		return i, nil
	}
	p, n, d := C.CString(provider), C.CString(node), C.CString(domain)
	defer C.free(unsafe.Pointer(d))
	defer C.free(unsafe.Pointer(p))
	defer C.free(unsafe.Pointer(n))
	i := new(Info)
	var ret C.int
	guest.Call("ofi: fi_getinfo", func() {
		for _, a := range asks {
			ret = C.argon_info(p, n, d, C.uint64_t(a.order), C.uint64_t(a.completion), &i.info)
			switch ret {
			case -C.FI_ENODATA:
				continue
			case 0: // it is asked of writes, not of all that is posted
				i.Delivery = a.completion != 0
				i.info.tx_attr.op_flags &^= C.FI_DELIVERY_COMPLETE
			}
			return
		}
	})
	if ret != 0 {
		at := ""
		if node != "" {
			at = " at " + node
		}
		return nil, errs.NotSupported("ofi: libfabric %s has no provider %q%s that carries messages and accesses: fi_getinfo: %s (ARGON_PROVIDER)", version(), provider, at, text(int(ret)))
	}
	f, dom, t, r := i.info.fabric_attr, i.info.domain_attr, i.info.tx_attr, i.info.rx_attr
	i.Properties = Properties{
		Provider: C.GoString(f.prov_name), Domain: C.GoString(dom.name), MR: uint64(dom.mr_mode), Order: uint64(t.msg_order),
		Version:  fmt.Sprintf("%s, provider %d.%d", version(), uint32(f.prov_version)>>16, uint32(f.prov_version)&0xffff),
		Delivery: i.Delivery,
		Inject:   int(t.inject_size), Sends: int(t.size), Receives: int(r.size), MaxMsg: uint64(i.info.ep_attr.max_msg_size),
		IP:     i.info.addr_format == C.FI_SOCKADDR || i.info.addr_format == C.FI_SOCKADDR_IN || i.info.addr_format == C.FI_SOCKADDR_IN6,
		Manual: dom.data_progress != C.FI_PROGRESS_AUTO,
	}
	if infos.all == nil {
		infos.all = map[[3]string]*Info{}
	}
	infos.all[k] = i
	return i, nil
}

// version is the library's.
func version() string {
	v := uint32(C.fi_version())
	return fmt.Sprintf("%d.%d", v>>16, v&0xffff)
}

// text returns libfabric's text of an error number, of either sign.
func text(n int) string {
	if n < 0 {
		n = -n
	}
	return C.GoString(C.fi_strerror(C.int(n)))
}

// An Error is one of libfabric's.
type Error struct {
	Call   string // the function
	Number int    // positive
	Detail string // the provider's own words, "" if it has none
}

// Error is the function, what libfabric says, and the provider's own words.
func (e *Error) Error() string {
	s := e.Call + ": " + text(e.Number)
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	return s
}

func failed(call string, ret int) error {
	if ret < 0 {
		ret = -ret
	}
	return &Error{Call: call, Number: ret}
}

// Endpoint is an endpoint. Its methods are called under one lock.
type Endpoint struct {
	*Info
	c    *C.struct_argon_endpoint
	at   C.uintptr_t       // c, for calls in which cgo need not look it up
	ops  *[mostAtOnce]Op   // of c
	done *[mostAtOnce]Done // of c
	bufs []buffers
	fake *domain // see Demand; else nil
}

// mostAtOnce is how many operations one call of C posts, or takes, at most.
const mostAtOnce = C.FABRIC_BATCH

// buffers are those of contexts that were made together.
type buffers struct {
	first, count uint32
	base         unsafe.Pointer
	size         int
}

// Open makes an endpoint with a completion queue of so many entries.
func Open(i *Info, entries int) (*Endpoint, error) {
	e := &Endpoint{Info: i}
	var ret, delivery C.int
	if i.Delivery {
		delivery = 1
	}
	var what *C.char
	guest.Call("ofi: opening "+i.Provider, func() { e.c = C.argon_open(i.info, delivery, C.size_t(entries), &ret, &what) })
	if e.c == nil {
		return nil, errs.Resource("ofi: %s: %s: %s", i.Provider, C.GoString(what), text(int(ret)))
	}
	e.at = C.uintptr_t(uintptr(unsafe.Pointer(e.c)))
	e.ops = (*[mostAtOnce]Op)(unsafe.Pointer(&e.c.ops))
	e.done = (*[mostAtOnce]Done)(unsafe.Pointer(&e.c.done))
	return e, nil
}

// Close frees the endpoint and all of its buffers. If it returns false, the provider could
// not close it, and may still write to the memory of accesses under way.
func (e *Endpoint) Close() bool {
	closed := C.argon_close(e.c) == 0
	e.c, e.at, e.ops, e.done = nil, 0, nil, nil
	return closed
}

// Cut ends all operations under way: none of them writes to memory when it has returned
// true, and nothing is posted any more. Poll goes on.
func (e *Endpoint) Cut() bool { return C.argon_cut(e.c) == 0 }

// Name is the endpoint's address, as Insert takes it.
func (e *Endpoint) Name() ([]byte, error) {
	b := make([]byte, 256)
	n := C.size_t(len(b))
	if ret := C.argon_name(e.c, unsafe.Pointer(&b[0]), &n); ret != 0 || int(n) > len(b) {
		return nil, errs.Resource("ofi: %s: fi_getname: %s", e.Provider, text(int(ret)))
	}
	return b[:n], nil
}

// Insert makes the endpoint with that address a peer.
func (e *Endpoint) Insert(addr []byte) (peer uint64, err error) {
	var p C.uint64_t
	if ret := C.argon_insert(e.c, unsafe.Pointer(unsafe.SliceData(addr)), &p); ret != 0 {
		return 0, failed("fi_av_insert", int(ret))
	}
	return uint64(p), nil
}

// Grow makes more contexts, each with a buffer of size bytes if that is not 0, and
// returns the first of their numbers, which are consecutive.
func (e *Endpoint) Grow(count, size int) (first uint32, err error) {
	var base *C.char
	var ret C.int
	n := C.argon_grow(e.c, C.uint32_t(count), C.size_t(size), &base, &ret)
	if n < 0 {
		return 0, errs.Resource("ofi: %s: %d buffers of %d bytes: %s", e.Provider, count, size, text(int(ret)))
	}
	e.bufs = append(e.bufs, buffers{uint32(n), uint32(count), unsafe.Pointer(base), size})
	return uint32(n), nil
}

// Buffer is the buffer of a context: C memory, until Close.
func (e *Endpoint) Buffer(context uint32) []byte {
	for i := range e.bufs {
		if b := &e.bufs[i]; context-b.first < b.count {
			return unsafe.Slice((*byte)(unsafe.Add(b.base, int(context-b.first)*b.size)), b.size)
		}
	}
	panic("fabric: no context " + strconv.Itoa(int(context)))
}

// Post posts operations in order and returns how many. again says that the next one may
// be posted when others are over; else err is why it cannot.
func (e *Endpoint) Post(ops []Op) (n int, again bool, err error) {
	if e.fake != nil {
		return e.fake.post(e, ops)
	}
	return e.post(ops)
}

// post is Post to the provider.
func (e *Endpoint) post(ops []Op) (n int, again bool, err error) {
	for n < len(ops) {
		some := copy(e.ops[:], ops[n:])
		n += int(C.argon_post(e.at, C.uint32_t(some)))
		switch e.c.err {
		case 0:
		case -C.FI_EAGAIN:
			return n, true, nil
		default:
			return n, false, failed("posting", int(e.c.err))
		}
	}
	return n, false, nil
}

// Poll fills in d with operations that are over and returns how many. An error is one of
// the completion queue itself.
func (e *Endpoint) Poll(d []Done) (int, error) {
	n := int(C.argon_poll(e.at, C.uint32_t(min(len(d), mostAtOnce))))
	copy(d, e.done[:n])
	if e.c.err != 0 {
		return n, failed("fi_cq_read", int(e.c.err))
	}
	if e.fake != nil {
		n = e.fake.over(d, n)
	}
	return n, nil
}

// Explain is the error of an operation that is over with one.
func (e *Endpoint) Explain(call string, d Done) error {
	var buf [256]C.char
	s := C.argon_cq_text(e.c, C.int(d.Provider), &buf[0], C.size_t(len(buf)))
	err := &Error{Call: call, Number: int(d.Err)}
	if d.Provider != 0 && s != nil {
		err.Detail = C.GoString(s)
	}
	return err
}

// Region is registered memory.
type Region struct {
	Key    uint64
	Raw    []byte // of the key, with MRRaw: what MapKey takes; else nil
	Base   uint64 // what Op.Remote of its first byte is
	Desc   uint64 // what Op.Desc of it is
	number uint32
}

// The uses of registered memory.
const (
	RemoteRead  = C.FI_REMOTE_READ
	RemoteWrite = C.FI_REMOTE_WRITE
	Local       = C.FI_READ | C.FI_WRITE
)

// Populate makes the pages of mem, if the provider asks for that before it is registered
// (FI_MR_ALLOCATED): memory that was never touched has none. It takes a second for some
// GiB, and may be called while the endpoint is used.
func (e *Endpoint) Populate(mem []byte) error {
	if e.MR&MRAllocated == 0 {
		return nil
	}
	if err := sys.Populate(unsafe.Pointer(unsafe.SliceData(mem)), len(mem)); err != nil {
		return errs.Resource("ofi: %s: registering %d bytes, whose pages are to be there (FI_MR_ALLOCATED): %v", e.Provider, len(mem), err)
	}
	return nil
}

// Register registers mem, pinned or not of the Go heap, whose pages are there (see
// Populate), for these uses, until Deregister or Close.
func (e *Endpoint) Register(mem []byte, uses uint64) (Region, error) {
	var r C.struct_argon_region
	if ret := C.argon_register(e.c, unsafe.Pointer(unsafe.SliceData(mem)), C.size_t(len(mem)), C.uint64_t(uses), &r); ret != 0 {
		return Region{}, errs.Resource("ofi: %s: registering %d bytes: fi_mr_reg: %s (-segment, ARGON_SEGMENT, ulimit -l)", e.Provider, len(mem), text(int(ret)))
	}
	x := Region{Key: uint64(r.key), Base: uint64(r.base), Desc: uint64(r.desc), number: uint32(r.number)}
	if r.raw > 0 {
		x.Raw = C.GoBytes(unsafe.Pointer(&r.bytes[0]), C.int(r.raw))
	}
	if e.fake != nil {
		x = e.fake.register(mem, uses, x)
	}
	return x, nil
}

// Deregister ends a registration, of which no operation is under way.
func (e *Endpoint) Deregister(r Region) error {
	if e.fake != nil {
		e.fake.deregister(r.number)
	}
	if ret := C.argon_deregister(e.c, C.uint32_t(r.number)); ret != 0 {
		return errs.Resource("ofi: %s: deregistering memory: fi_close: %s", e.Provider, text(int(ret)))
	}
	return nil
}

// MostRaw is the longest raw key, bytes.
const MostRaw = C.FABRIC_RAW

// MapKey makes Region.Raw of a peer a key for Op.Key, until UnmapKey.
func (e *Endpoint) MapKey(base uint64, raw []byte) (uint64, error) {
	if e.fake != nil {
		return e.fake.mapKey(base, raw), nil
	}
	var key C.uint64_t
	if ret := C.argon_map(e.c, C.uint64_t(base), unsafe.Pointer(unsafe.SliceData(raw)), C.size_t(len(raw)), &key); ret != 0 {
		return 0, errs.Resource("ofi: %s: a key of %d bytes: fi_mr_map_raw: %s", e.Provider, len(raw), text(int(ret)))
	}
	return uint64(key), nil
}

// UnmapKey forgets a key that MapKey has made.
func (e *Endpoint) UnmapKey(key uint64) {
	if e.fake != nil {
		delete(e.fake.mapped, key)
		return
	}
	C.argon_unmap(e.c, C.uint64_t(key))
}

// FD is a descriptor that becomes readable when operations are over, the library's, or -1
// if the provider has none.
func (e *Endpoint) FD() int { return int(e.c.fd) }

// TryWait reports whether FD will become readable for whatever comes next: else Poll has to
// be called first.
func (e *Endpoint) TryWait() bool {
	return (e.fake == nil || len(e.fake.early) == 0) && C.argon_trywait(e.c) == 0
}

// Pin keeps mem, of the Go heap or not, where it is until p is unpinned, and returns its
// address for Op.Local.
func Pin(p *runtime.Pinner, mem []byte) uintptr {
	b := unsafe.SliceData(mem)
	p.Pin(b)
	return uintptr(unsafe.Pointer(b))
}
