package providers

import (
	"math/bits"
	"strings"
)

// Caps are an endpoint's capabilities, of fi_getinfo(3), as far as they matter
// here.
type Caps uint32

// The capabilities.
const (
	CapMsg Caps = 1 << iota
	CapRMA
	CapAtomic
	CapRead
	CapWrite
	CapRemoteRead
	CapRemoteWrite
	CapSend
	CapRecv
	CapMultiRecv
)

// Asked are the capabilities that List asks for. CapAtomic is none of them: providers
// that keep messages behind writes (OrderSAW) give that up for it, as tcp;ofi_rxm does.
const Asked = CapMsg | CapRMA

// required are the capabilities that a provider has to offer; some name the parts of MSG and
// RMA only if these are not all there.
const required = CapMsg | CapRMA

var capNames = []string{
	"FI_MSG", "FI_RMA", "FI_ATOMIC", "FI_READ", "FI_WRITE", "FI_REMOTE_READ", "FI_REMOTE_WRITE", "FI_SEND", "FI_RECV", "FI_MULTI_RECV",
}

// String lists the libfabric names.
func (c Caps) String() string { return join(uint64(c), capNames) }

// MR are a provider's demands on registered memory: mr_mode of fi_mr(3).
type MR uint32

// The bits of an mr_mode.
const (
	MRLocal     MR = 1 << iota // local buffers are registered, too
	MRVirtAddr                 // peers name a byte by its virtual address, not by an offset
	MRAllocated                // pages are there when they are registered
	MRProvKey                  // the provider chooses keys
	MREndpoint                 // regions are bound to the endpoint and enabled
	MRRaw                      // keys are longer than 8 bytes
	MRMMUNotify                // the owner says when pages of a region change
	MRRMAEvent                 // as MREndpoint, for counters of remote accesses
	MROther                    // any bit that is not listed here
)

// MRHandled are the bits that the conduit copes with.
const MRHandled = MRLocal | MRVirtAddr | MRAllocated | MRProvKey | MREndpoint | MRRaw

var mrNames = []string{
	"FI_MR_LOCAL", "FI_MR_VIRT_ADDR", "FI_MR_ALLOCATED", "FI_MR_PROV_KEY", "FI_MR_ENDPOINT", "FI_MR_RAW", "FI_MR_MMU_NOTIFY", "FI_MR_RMA_EVENT", "another bit",
}

// String lists the libfabric names.
func (m MR) String() string { return join(uint64(m), mrNames) }

// Mode are a provider's demands on each operation: mode of fi_getinfo(3).
type Mode uint32

// The bits of a mode.
const (
	ModeContext   Mode = 1 << iota // room for four words beside each operation
	ModeContext2                   // room for eight
	ModeMsgPrefix                  // room before each message
	ModeOther                      // any bit that is not listed here
)

// ModeHandled are the bits that the conduit copes with.
const ModeHandled = ModeContext | ModeContext2

var modeNames = []string{"FI_CONTEXT", "FI_CONTEXT2", "FI_MSG_PREFIX", "another bit"}

// String lists the libfabric names.
func (m Mode) String() string { return join(uint64(m), modeNames) }

// Order lists the operations that do not overtake others: msg_order of fi_endpoint(3).
type Order uint32

// The orders.
const (
	OrderSAS Order = 1 << iota // a message does not overtake a message
	OrderSAW                   // a message does not overtake a write
	OrderWAW                   // a write does not overtake a write
	OrderRAW                   // a read does not overtake a write
)

var orderNames = []string{"SAS", "SAW", "WAW", "RAW"}

// String lists the names without their prefix FI_ORDER_.
func (o Order) String() string { return join(uint64(o), orderNames) }

func join(set uint64, names []string) string {
	if set == 0 {
		return "none"
	}
	var all []string
	for ; set != 0; set &= set - 1 {
		if i := bits.TrailingZeros64(set); i < len(names) {
			all = append(all, names[i])
		}
	}
	return strings.Join(all, " ")
}

// A Provider is one way to a network: what fi_getinfo said of a provider, a fabric and a
// domain. A machine has several of one provider, one for each interface and address.
type Provider struct {
	Name     string // such as "tcp;ofi_rxm"
	Fabric   string // such as "192.0.2.0/24": endpoints of one fabric reach each other
	Domain   string // such as "mlx5_0" or "eth0"
	Protocol string // such as "FI_PROTO_RXM"
	Address  string // the endpoint's, where it is one of IP; else ""
	Device   string // of the network card, such as "mlx5_0"; "" if the provider does not say
	Link     string // kind of network of the card, such as "InfiniBand"; "" likewise
	Version  string // the provider's own, such as "117.0"
	Caps     Caps
	MR       MR
	Mode     Mode
	Order    Order  // what it keeps if SAS and SAW are asked for
	Wait     Wait   // whether a process can sleep until a completion comes
	MaxMsg   uint64 // longest message and RMA access, bytes
	Inject   uint64 // longest message that is copied when it is posted, bytes
	KeySize  uint64 // bytes of a key of registered memory
}

// Wait reports whether a completion queue has a file descriptor to sleep on (FI_WAIT_FD).
// fi_getinfo does not tell; it is known of the provider.
type Wait int

// Whether a provider has descriptors to wait on.
const (
	WaitUnknown Wait = iota // opening the queue tells
	WaitFD                  // has one
	WaitNone                // has none: a rank looks, in steps
)

// String says it in a word or two.
func (w Wait) String() string { return [...]string{"unknown", "fd", "none"}[w] }
