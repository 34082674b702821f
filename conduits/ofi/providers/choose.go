package providers

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/argon-go/argon/internal/errs"
)

// HowTo tells how to build with libfabric, for errors and usage texts.
const HowTo = "install libfabric (apt-get install libfabric-dev, or the site's module), and build gasrun and the program with go build -tags ofi, which needs a C compiler and cgo (CGO_ENABLED=1)"

// NotBuilt is the error of a build that does not know the library; it tells how to make one that
// does.
func NotBuilt() error {
	return errs.NotSupported("ofi: this program was built without libfabric: %s", HowTo)
}

// Class is the purpose of a provider.
type Class int

// The classes, best first.
const (
	Hardware Class = iota // drives a network card by itself
	Ethernet              // by TCP, or by hardware that the kernel imitates
	Unknown               // argon has no rule for it
	Refused               // not used unless forced, see Refusal
)

// String names the purpose.
func (c Class) String() string {
	return [...]string{"hardware", "tests and Ethernet", "unknown", "refused"}[c]
}

// rule has argon's knowledge of a provider.
type rule struct {
	name   string
	class  Class
	wait   Wait
	refuse string // why, for Refused
	vague  string // why a Hardware provider is not taken unless named; "" if it may be
}

// rules are in order of preference: of what is there at once, a card's own provider
// comes before one that drives several kinds.
var rules = []rule{
	{name: "cxi", class: Hardware},
	{name: "efa", class: Hardware, wait: WaitNone}, // fi_efa(7), of 1.17
	{name: "opx", class: Hardware},
	{name: "psm3", class: Hardware},
	{name: "verbs;ofi_rxm", class: Hardware, wait: WaitFD},
	{name: "ucx", class: Hardware, vague: "ucx runs on TCP, too, and does not say what it drives"},
	{name: "net", class: Ethernet, wait: WaitFD},
	{name: "tcp", class: Ethernet, wait: WaitFD}, // of libfabric 1.18 on: what was net before
	{name: "tcp;ofi_rxm", class: Ethernet, wait: WaitFD},
	{name: "net;ofi_rxm", class: Ethernet, wait: WaitFD},
	{name: "shm", class: Refused, wait: WaitNone, refuse: "installs signal handlers in place of Go's, leaves files behind, checks no keys, and cannot be slept on; argon's conduit shm joins the ranks of a host"},
	{name: "sm2", class: Refused, wait: WaitNone, refuse: "joins ranks of one host only, which argon's conduit shm does"},
	{name: "sockets", class: Refused, wait: WaitFD, refuse: "is deprecated, and waits up to 10 ms for a message; net and tcp;ofi_rxm run on the same interfaces"},
	{name: "udp;ofi_rxd", class: Refused, wait: WaitNone, refuse: rxd},
	{name: "verbs;ofi_rxd", class: Refused, wait: WaitNone, refuse: rxd},
}

const rxd = "is under development: never answers an access that is refused, crashes the process at atomics, and cannot be slept on"

// find is the rule for a provider of that name.
func find(name string) rule {
	for _, r := range rules {
		if r.name == name {
			return r
		}
	}
	return rule{name: name, class: Unknown}
}

// WaitOf is the kind of wait object that the provider of that name has.
func WaitOf(name string) Wait { return find(name).wait }

// Wish has the options of a job for its provider. The zero value leaves the choice to the rules.
type Wish struct {
	// Name is the provider that is to be used, "" for any: as fi_getinfo says it, or its part
	// before a semicolon if no provider is called just that. Knob: gasrun -provider, ARGON_PROVIDER.
	Name string
	// Force has a refused provider used, if Name says it. Knob: gasrun -provider-force,
	// ARGON_PROVIDER_FORCE.
	Force bool
	// Iface is the domain or address that is to be used, "" for any. Knob: gasrun
	// -iface, ARGON_IFACE.
	Iface string
}

// A Choice is a provider and what was decided about it.
type Choice struct {
	Provider
	Class  Class
	Usable bool   // false: the conduit cannot use it, or must not
	Why    string // why it was passed over; "" for the first if that is Usable
	Notes  []string
}

// Choose puts all of list in order: what can be used comes first and the best of it
// before all, each other one with the reason why it was passed over. Of equals the one
// that list has first wins. list is left as it is.
func Choose(list []Provider, w Wish) []Choice {
	all := make([]Choice, len(list))
	for i, p := range list {
		all[i] = judge(p, list, w)
	}
	slices.SortStableFunc(all, compare)
	for i := range all {
		if c := &all[i]; i > 0 && c.Usable {
			c.Why = behind(&all[0], c)
		}
	}
	return all
}

// judge is the verdict on a provider alone.
func judge(p Provider, list []Provider, w Wish) Choice {
	r := find(p.Name)
	if r.class == Hardware && imitated(p.Domain) {
		r.class = Ethernet
	}
	c := Choice{Provider: p, Class: r.class, Usable: true}
	pass := func(format string, args ...any) {
		if c.Usable {
			c.Usable, c.Why = false, fmt.Sprintf(format, args...)
		}
	}
	named := w.Name != "" && asked(p.Name, list, w.Name)
	if w.Name != "" && !named {
		pass("-provider asks for %s", w.Name)
	}
	switch {
	case r.class == Refused && !(w.Force && named):
		pass("%s (-provider-force overrides)", r.refuse)
	case r.class == Refused:
		c.Notes = append(c.Notes, "forced: "+r.refuse)
	case r.class == Unknown && !named:
		pass("argon has no rule for it; -provider %s uses it all the same", p.Name)
	}
	if w.Iface != "" && w.Iface != p.Domain && w.Iface != p.Device && w.Iface != p.Address {
		pass("-iface asks for %s", w.Iface)
	}
	if missing := required &^ p.Caps; missing != 0 {
		pass("does not offer %s", missing)
	}
	if unhandled := p.MR &^ MRHandled; unhandled != 0 {
		pass("asks for %s of registered memory, which the conduit does not do", unhandled)
	}
	if unhandled := p.Mode &^ ModeHandled; unhandled != 0 {
		pass("asks for %s of each operation, which the conduit does not do", unhandled)
	}
	if p.MaxMsg < MinMsg {
		pass("carries at most %d bytes at once: the conduit's frames have up to %d", p.MaxMsg, MinMsg)
	}
	if !c.Usable {
		return c
	}
	if p.Order&OrderSAW == 0 {
		c.Notes = append(c.Notes, "no FI_ORDER_SAW: a message may overtake a write, so a notification waits at the target until its data is there")
	}
	if p.Wait == WaitNone {
		c.Notes = append(c.Notes, "no descriptor to sleep on: a rank that waits sleeps in steps, and hears up to a step late")
	}
	return c
}

// MinMsg is the longest message that a provider has to carry, bytes: a frame.
const MinMsg = 16 << 10

// asked reports whether name is the provider that the wish is for.
func asked(name string, list []Provider, wish string) bool {
	if name == wish {
		return true
	}
	core, _, layered := strings.Cut(name, ";")
	return layered && core == wish && !slices.ContainsFunc(list, func(p Provider) bool { return p.Name == wish })
}

// imitated reports whether the kernel imitates the card of that name by an Ethernet
// interface (rdma_rxe, siw).
func imitated(domain string) bool {
	return strings.HasPrefix(domain, "rxe") || strings.HasPrefix(domain, "siw")
}

// compare is negative if a is better than b.
func compare(a, b Choice) int {
	no := func(ok bool) int {
		if ok {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(no(a.Usable), no(b.Usable)),
		cmp.Compare(a.Class, b.Class),
		cmp.Compare(place(a), place(b)),
		cmp.Compare(no(a.Order&OrderSAW != 0), no(b.Order&OrderSAW != 0)),
		cmp.Compare(narrow(a.Address), narrow(b.Address)),
	)
}

// place is where a provider stands in the order of preference: one on a card that
// the kernel imitates comes after all that have a rule.
func place(c Choice) int {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.name == c.Name })
	if i < 0 || rules[i].class != c.Class {
		return len(rules)
	}
	return i
}

// narrow is how little of the world an address is reached from: 0 for one of a network,
// or none of IP, then those of one link, then those of this machine alone.
func narrow(address string) int {
	a, err := netip.ParseAddr(address)
	switch {
	case err != nil:
		return 0
	case a.IsLoopback():
		return 2
	case a.IsLinkLocalUnicast():
		return 1
	}
	return 0
}

// behind is why c, which can be used, comes after best.
func behind(best, c *Choice) string {
	switch {
	case c.Class != best.Class:
		return fmt.Sprintf("is for %s; %s comes before", c.Class, best.Name)
	case c.Name != best.Name:
		return best.Name + " comes before it"
	case c.Order&OrderSAW != best.Order&OrderSAW:
		return "no FI_ORDER_SAW, which the first has"
	case narrow(c.Address) == 2 && narrow(best.Address) < 2:
		return "reaches this machine alone"
	case narrow(c.Address) == 1 && narrow(best.Address) < 1:
		return "reaches one link"
	}
	return "a further interface or address of the same provider (-iface)"
}

// Best is the first of what Choose made, or an error that says why there is none.
func Best(all []Choice, w Wish) (Choice, error) {
	if len(all) > 0 && all[0].Usable {
		return all[0], nil
	}
	if len(all) == 0 {
		return Choice{}, errs.NotSupported("ofi: libfabric has no provider with messages and remote access on this machine; fi_info -l lists what it was built with")
	}
	var said []string
	for _, c := range all {
		if w.Name == "" || asked(c.Name, list(all), w.Name) {
			if s := c.Name + ": " + c.Why; !slices.Contains(said, s) {
				said = append(said, s)
			}
		}
	}
	if len(said) == 0 {
		return Choice{}, errs.BadArg("ofi: no provider %q here; there are %s (-provider, ARGON_PROVIDER)", w.Name, strings.Join(names(all), ", "))
	}
	return Choice{}, errs.NotSupported("ofi: no provider can be used (gasrun -conduit ofi -providers): %s", strings.Join(said, "; "))
}

func list(all []Choice) []Provider {
	l := make([]Provider, len(all))
	for i := range all {
		l[i] = all[i].Provider
	}
	return l
}

// names are the providers' names, each once.
func names(all []Choice) []string {
	var l []string
	for _, c := range all {
		if !slices.Contains(l, c.Name) {
			l = append(l, c.Name)
		}
	}
	return l
}

// Automatic reports whether a job on several hosts is to use the first of what Choose made
// although it was not asked for the conduit, and by which rule: only a card that a
// provider drives by itself is faster than argon's own udp.
func Automatic(all []Choice) (ok bool, why string) {
	if len(all) == 0 || !all[0].Usable {
		return false, "no provider of libfabric can be used"
	}
	best := all[0]
	if best.Class != Hardware {
		return false, fmt.Sprintf("%s is for %s, where argon's udp is faster", best.Name, best.Class)
	}
	if r := find(best.Name); r.vague != "" && best.Device == "" {
		return false, r.vague
	}
	return true, fmt.Sprintf("%s drives %s", best.Name, cmp.Or(best.Device, best.Domain))
}
