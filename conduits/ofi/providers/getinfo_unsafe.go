//go:build ofi && cgo

// This file is the only one of the package that needs C: it copies what fi_getinfo says into
// Go values. Pointers are read while the list is held and freed with it.

package providers

/*
#cgo LDFLAGS: -lfabric
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

// ask is fi_getinfo.
static int ask(uint32_t version, struct fi_info *hints, struct fi_info **list) {
	// The registration cache of some providers hooks the allocator to see memory
	// unmapped, which deadlocks; what argon registers it deregisters first. The library
	// reads this once, in the first call.
	setenv("FI_MR_CACHE_MONITOR", "disabled", 0);
	return fi_getinfo(version, 0, 0, 0, hints, list);
}
*/
import "C"

import (
	"fmt"
	"net/netip"
	"slices"
	"unsafe"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/guest"
)

// Built reports whether this build knows the library.
const Built = true

// version is the least interface of the library that argon uses, that of libfabric 1.17.
const version = 1<<16 | 17

// List asks the library which providers the machine has. The first call in a process takes
// some 0.1 s, in which the library loads them; later ones a millisecond. Variables FI_* say
// what the library leaves out. An empty list is no error.
func List() ([]Provider, error) {
	plain, err := getinfo(Asked, 0)
	if err != nil {
		return nil, err
	}
	// A provider leaves out of its answer what it could do if that was asked for, and
	// itself if it cannot.
	ordered, err := getinfo(Asked, OrderSAS|OrderSAW)
	if err != nil {
		return nil, err
	}
	multi, err := getinfo(Asked|CapMultiRecv, 0)
	if err != nil {
		return nil, err
	}
	var all []Provider
	for _, p := range plain {
		if i := slices.IndexFunc(ordered, p.same); i >= 0 {
			p.Order |= ordered[i].Order
		} else {
			p.Order &^= OrderSAW
		}
		if slices.ContainsFunc(multi, p.same) {
			p.Caps |= CapMultiRecv
		}
		if !slices.ContainsFunc(all, p.same) {
			all = append(all, p)
		}
	}
	return all, nil
}

// same reports whether q is the same way to a network.
func (p *Provider) same(q Provider) bool {
	return p.Name == q.Name && p.Fabric == q.Fabric && p.Domain == q.Domain && p.Protocol == q.Protocol && p.Address == q.Address
}

// Library is the version of the library that is loaded, such as "1.17".
func Library() string {
	v := uint32(C.fi_version())
	return fmt.Sprintf("%d.%d", v>>16, v&0xffff)
}

// getinfo is one question: reliable datagram endpoints with these capabilities and
// orders.
func getinfo(caps Caps, order Order) ([]Provider, error) {
	hints := C.fi_allocinfo()
	if hints == nil {
		return nil, errs.Resource("ofi: no memory for fi_allocinfo")
	}
	defer C.fi_freeinfo(hints)
	hints.caps = C.uint64_t(translate(uint64(caps), capBits))
	hints.mode = C.FI_CONTEXT | C.FI_CONTEXT2
	hints.ep_attr._type = C.FI_EP_RDM
	// All bits: what asks for one that is not handled is listed, with that reason.
	hints.domain_attr.mr_mode = C.int(translate(uint64(MROther-1), mrBits))
	hints.tx_attr.msg_order = C.uint64_t(translate(uint64(order), orderBits))
	hints.rx_attr.msg_order = hints.tx_attr.msg_order
	var list *C.struct_fi_info
	var rc C.int
	guest.Call("ofi: fi_getinfo", func() { rc = C.ask(version, hints, &list) })
	switch {
	case rc == -C.FI_ENODATA:
		return nil, nil
	case rc != 0:
		return nil, errs.Resource("ofi: fi_getinfo: %s (%d); FI_LOG_LEVEL=info says more", C.GoString(C.fi_strerror(-rc)), int(rc))
	}
	defer C.fi_freeinfo(list)
	var all []Provider
	for i := list; i != nil; i = i.next {
		all = append(all, provider(i))
	}
	return all, nil
}

var (
	capBits = []uint64{
		C.FI_MSG, C.FI_RMA, C.FI_ATOMIC, C.FI_READ, C.FI_WRITE, C.FI_REMOTE_READ, C.FI_REMOTE_WRITE, C.FI_SEND, C.FI_RECV, C.FI_MULTI_RECV,
	}
	mrBits = []uint64{
		C.FI_MR_LOCAL, C.FI_MR_VIRT_ADDR, C.FI_MR_ALLOCATED, C.FI_MR_PROV_KEY, C.FI_MR_ENDPOINT, C.FI_MR_RAW, C.FI_MR_MMU_NOTIFY, C.FI_MR_RMA_EVENT,
	}
	modeBits  = []uint64{C.FI_CONTEXT, C.FI_CONTEXT2, C.FI_MSG_PREFIX}
	orderBits = []uint64{C.FI_ORDER_SAS, C.FI_ORDER_SAW, C.FI_ORDER_WAW, C.FI_ORDER_RAW}
)

// translate is the library's form of a set of bits.
func translate(set uint64, bits []uint64) (theirs uint64) {
	for i, b := range bits {
		if set&(1<<i) != 0 {
			theirs |= b
		}
	}
	return theirs
}

// back is the opposite; other is set for bits that are none of these.
func back(theirs uint64, bits []uint64, other uint64) (set uint64) {
	for i, b := range bits {
		if theirs&b == b {
			set |= 1 << i
		}
		theirs &^= b
	}
	if theirs != 0 {
		set |= other
	}
	return set
}

// provider copies what i says.
func provider(i *C.struct_fi_info) Provider {
	p := Provider{
		Name:     C.GoString(i.fabric_attr.prov_name),
		Fabric:   C.GoString(i.fabric_attr.name),
		Domain:   C.GoString(i.domain_attr.name),
		Protocol: C.GoString(C.fi_tostr(unsafe.Pointer(&i.ep_attr.protocol), C.FI_TYPE_PROTOCOL)),
		Address:  address(i),
		Version:  fmt.Sprintf("%d.%d", i.fabric_attr.prov_version>>16, i.fabric_attr.prov_version&0xffff),
		Caps:     Caps(back(uint64(i.caps), capBits, 0)),
		MR:       MR(back(uint64(i.domain_attr.mr_mode), mrBits, uint64(MROther))),
		Mode:     Mode(back(uint64(i.mode), modeBits, uint64(ModeOther))),
		Order:    Order(back(uint64(i.tx_attr.msg_order&i.rx_attr.msg_order), orderBits, 0)),
		MaxMsg:   uint64(i.ep_attr.max_msg_size),
		Inject:   uint64(i.tx_attr.inject_size),
		KeySize:  uint64(i.domain_attr.mr_key_size),
	}
	p.Wait = WaitOf(p.Name)
	if nic := i.nic; nic != nil {
		if nic.device_attr != nil && nic.device_attr.name != nil {
			p.Device = C.GoString(nic.device_attr.name)
		}
		if nic.link_attr != nil && nic.link_attr.network_type != nil {
			p.Link = C.GoString(nic.link_attr.network_type)
		}
	}
	return p
}

// address is the endpoint's own address if it is one of IP.
func address(i *C.struct_fi_info) string {
	const ip4, ip6 = 4, 8 // where sockaddr_in and sockaddr_in6 have the address, netinet/in.h
	b := unsafe.Slice((*byte)(i.src_addr), int(i.src_addrlen))
	switch {
	case i.addr_format == C.FI_SOCKADDR_IN && len(b) >= ip4+4:
		return netip.AddrFrom4([4]byte(b[ip4:])).String()
	case i.addr_format == C.FI_SOCKADDR_IN6 && len(b) >= ip6+16:
		return netip.AddrFrom16([16]byte(b[ip6:])).String()
	}
	return ""
}
