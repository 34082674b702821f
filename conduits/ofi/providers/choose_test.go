package providers

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/errs"
)

// one is a provider as a plain one describes itself, changed by what follows its name.
func one(name string, change ...func(*Provider)) Provider {
	p := Provider{
		Name: name, Fabric: "192.0.2.0/24", Domain: "eth0", Address: "192.0.2.7", Caps: required | CapRead | CapWrite,
		Order: OrderSAS | OrderSAW, MaxMsg: 1 << 40, Inject: 64, KeySize: 8, Wait: WaitOf(name),
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

func at(domain, address string) func(*Provider) {
	return func(p *Provider) { p.Domain, p.Address = domain, address }
}

// TestChoose: which provider is taken, and what is said of the others.
func TestChoose(t *testing.T) {
	t.Parallel()
	card := at("mlx5_0", "")
	for _, c := range []struct {
		name  string
		list  []Provider
		wish  Wish
		order string   // names, in order, with - before those that are not used
		why   []string // what is said of each
	}{
		{name: "nothing"},
		{
			name: "a machine without hardware", list: []Provider{one("udp;ofi_rxd"), one("tcp;ofi_rxm"), one("net;ofi_rxm"), one("shm"), one("net"), one("sockets")},
			order: "net tcp;ofi_rxm net;ofi_rxm -shm -sockets -udp;ofi_rxd",
			why:   []string{"", "net comes before", "net comes before", "signal handlers", "10 ms", "crashes"},
		},
		{
			name: "hardware first", list: []Provider{one("net"), one("verbs;ofi_rxm", card)},
			order: "verbs;ofi_rxm net", why: []string{"", "for tests and Ethernet; verbs;ofi_rxm comes before"},
		},
		{
			name: "a card's own provider first", list: []Provider{one("ucx"), one("verbs;ofi_rxm"), one("psm3"), one("opx"), one("efa"), one("cxi")},
			order: "cxi efa opx psm3 verbs;ofi_rxm ucx", why: []string{"", "cxi comes before", "", "", "", ""},
		},
		{
			name: "imitated cards are Ethernet", list: []Provider{one("verbs;ofi_rxm", at("rxe0", "")), one("net"), one("verbs;ofi_rxm", at("siw1", ""))},
			order: "net verbs;ofi_rxm verbs;ofi_rxm", why: []string{"", "net comes before", "net comes before"},
		},
		{
			name: "one without rule", list: []Provider{one("warp"), one("net")},
			order: "net -warp", why: []string{"", "argon has no rule for it; -provider warp"},
		},
		{
			name: "one without rule, asked for", list: []Provider{one("net"), one("warp")}, wish: Wish{Name: "warp"},
			order: "warp -net", why: []string{"", "-provider asks for warp"},
		},
		{
			name: "asked for", list: []Provider{one("net"), one("tcp;ofi_rxm")}, wish: Wish{Name: "tcp;ofi_rxm"},
			order: "tcp;ofi_rxm -net", why: []string{"", "-provider asks for tcp;ofi_rxm"},
		},
		{
			name: "by its first part", list: []Provider{one("net"), one("tcp;ofi_rxm")}, wish: Wish{Name: "tcp"},
			order: "tcp;ofi_rxm -net", why: []string{"", "-provider asks for tcp"},
		},
		{
			name: "but not if one is called so", list: []Provider{one("net;ofi_rxm"), one("net")}, wish: Wish{Name: "net"},
			order: "net -net;ofi_rxm", why: []string{"", "-provider asks for net"},
		},
		{
			name: "refused although asked for", list: []Provider{one("shm")}, wish: Wish{Name: "shm"},
			order: "-shm", why: []string{"-provider-force"},
		},
		{
			name: "forced", list: []Provider{one("net"), one("shm")}, wish: Wish{Name: "shm", Force: true},
			order: "shm -net", why: []string{"", "-provider asks for shm"},
		},
		{
			name: "force is for what is asked for", list: []Provider{one("shm"), one("sockets")}, wish: Wish{Name: "sockets", Force: true},
			order: "sockets -shm", why: []string{"", "-provider asks for sockets"},
		},
		{
			name: "no force helps against what the conduit cannot do", wish: Wish{Name: "sockets", Force: true},
			list:  []Provider{one("sockets", func(p *Provider) { p.MR = MRMMUNotify })},
			order: "-sockets", why: []string{"FI_MR_MMU_NOTIFY"},
		},
		{
			name: "modes that are handled", list: []Provider{one("cxi", func(p *Provider) { p.MR, p.Mode = MRHandled, ModeHandled })},
			order: "cxi", why: []string{""},
		},
		{
			name: "modes that are not", list: []Provider{
				one("cxi", func(p *Provider) { p.MR = MRRMAEvent }), one("efa", func(p *Provider) { p.MR = MROther }),
				one("opx", func(p *Provider) { p.Mode = ModeMsgPrefix }), one("net"),
			},
			order: "net -cxi -efa -opx", why: []string{"", "FI_MR_RMA_EVENT", "another bit of registered", "FI_MSG_PREFIX"},
		},
		{
			name: "no remote access, short messages", list: []Provider{one("cxi", func(p *Provider) { p.Caps = CapMsg }), one("efa", func(p *Provider) { p.MaxMsg = 4096 })},
			order: "-cxi -efa", why: []string{"does not offer FI_RMA", "at most 4096 bytes"},
		},
		{
			name: "order decides between equals", list: []Provider{one("cxi", func(p *Provider) { p.Order = OrderSAS }), one("cxi")},
			order: "cxi cxi", why: []string{"", "no FI_ORDER_SAW"},
		},
		{
			name: "addresses", list: []Provider{one("net", at("lo", "127.0.0.1")), one("net", at("eth0", "fe80::1")), one("net", at("eth0", "192.0.2.7")), one("net", at("eth1", "198.51.100.2"))},
			order: "net net net net", why: []string{"", "further interface", "one link", "this machine alone"},
		},
		{
			name: "interface", list: []Provider{one("net", at("eth0", "192.0.2.7")), one("net", at("eth1", "198.51.100.2"))}, wish: Wish{Iface: "eth1"},
			order: "net -net", why: []string{"", "-iface asks for eth1"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all := Choose(c.list, c.wish)
			var got []string
			for _, x := range all {
				if !x.Usable {
					x.Name = "-" + x.Name
				}
				got = append(got, x.Name)
			}
			if s := strings.Join(got, " "); s != c.order {
				t.Fatalf("%s, want %s", s, c.order)
			}
			for i, want := range c.why {
				if !strings.Contains(all[i].Why, want) || want == "" && i == 0 && all[i].Why != "" {
					t.Errorf("%s: %q, want %q in it", got[i], all[i].Why, want)
				}
			}
		})
	}
}

// TestBest: what is said if nothing can be used.
func TestBest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list []Provider
		wish Wish
		kind error
		want []string
	}{
		{nil, Wish{}, errs.ErrNotSupported, []string{"no provider with messages and remote access", "fi_info -l"}},
		{[]Provider{one("net"), one("net"), one("shm")}, Wish{Name: "cxi"}, errs.ErrBadArg, []string{`no provider "cxi" here; there are net, shm (-provider, ARGON_PROVIDER)`}},
		{[]Provider{one("net"), one("shm")}, Wish{Name: "shm"}, errs.ErrNotSupported, []string{"shm: installs signal handlers", "-provider-force"}},
		{[]Provider{one("sockets"), one("shm")}, Wish{}, errs.ErrNotSupported, []string{"shm: ", "; sockets: "}},
	} {
		_, err := Best(Choose(c.list, c.wish), c.wish)
		if !errors.Is(err, c.kind) {
			t.Errorf("%+v: %v", c.wish, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%+v: %v, want %q in it", c.wish, err, w)
			}
		}
	}
	if c, err := Best(Choose([]Provider{one("shm"), one("net")}, Wish{}), Wish{}); err != nil || c.Name != "net" {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestAutomatic: which machines have a job on hosts use ofi unasked.
func TestAutomatic(t *testing.T) {
	t.Parallel()
	card := func(p *Provider) { p.Device = "ucx_0" }
	for _, c := range []struct {
		list []Provider
		ok   bool
		why  string
	}{
		{nil, false, "no provider"},
		{[]Provider{one("shm")}, false, "no provider"},
		{[]Provider{one("net"), one("tcp;ofi_rxm")}, false, "net is for tests and Ethernet"},
		{[]Provider{one("verbs;ofi_rxm", at("rxe0", ""))}, false, "verbs;ofi_rxm is for tests and Ethernet"},
		{[]Provider{one("ucx"), one("net")}, false, "does not say"},
		{[]Provider{one("ucx", card)}, true, "ucx drives ucx_0"},
		{[]Provider{one("net"), one("cxi", at("cxi0", ""))}, true, "cxi drives cxi0"},
		{[]Provider{one("cxi", func(p *Provider) { p.MR = MROther }), one("net")}, false, "net is for"},
	} {
		if ok, why := Automatic(Choose(c.list, Wish{})); ok != c.ok || !strings.Contains(why, c.why) {
			t.Errorf("%v: %v, %q", c.list, ok, why)
		}
	}
}

// draw makes any provider.
func draw(t *rapid.T) Provider {
	names := []string{"warp", "verbs", "tcp;warp"}
	for _, r := range rules {
		names = append(names, r.name)
	}
	return Provider{
		Name:    rapid.SampledFrom(names).Draw(t, "name"),
		Domain:  rapid.SampledFrom([]string{"mlx5_0", "rxe0", "siw0", "eth0"}).Draw(t, "domain"),
		Address: rapid.SampledFrom([]string{"", "192.0.2.1", "127.0.0.1", "::1", "fe80::1"}).Draw(t, "address"),
		Caps:    rapid.SampledFrom([]Caps{required, required, required | CapMultiRecv, CapMsg, CapRMA}).Draw(t, "caps"),
		MR:      rapid.OneOf(rapid.Just(MR(0)), rapid.Just(MRHandled), rapid.Map(rapid.Uint32Range(0, uint32(MROther)*2-1), func(u uint32) MR { return MR(u) })).Draw(t, "mr"),
		Mode:    rapid.OneOf(rapid.Just(Mode(0)), rapid.Map(rapid.Uint32Range(0, uint32(ModeOther)*2-1), func(u uint32) Mode { return Mode(u) })).Draw(t, "mode"),
		Order:   Order(rapid.Uint32Range(0, 15).Draw(t, "order")),
		MaxMsg:  rapid.SampledFrom([]uint64{0, MinMsg - 1, MinMsg, 1 << 62}).Draw(t, "largest"),
	}
}

// TestProperties: whatever a library says, nothing is lost, what cannot or must not be
// used is not, a better class is before a worse one, and whatever is passed over has a
// reason.
func TestProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(draw), 0, 12).Draw(t, "list")
		before := slices.Clone(list)
		w := Wish{Force: rapid.Bool().Draw(t, "force")}
		if len(list) > 0 && rapid.Bool().Draw(t, "named") {
			w.Name = rapid.SampledFrom(list).Draw(t, "wish").Name
		}
		all := Choose(list, w)
		if !slices.Equal(list, before) {
			t.Fatalf("the list was changed: %v, was %v", list, before)
		}
		left := slices.Clone(list)
		for i, c := range all {
			j := slices.Index(left, c.Provider)
			if j < 0 {
				t.Fatalf("%+v is not of the list", c.Provider)
			}
			left = slices.Delete(left, j, j+1)
			able := c.Caps&(CapMsg|CapRMA) == CapMsg|CapRMA && c.MR&(MRMMUNotify|MRRMAEvent|MROther) == 0 && c.Mode&(ModeMsgPrefix|ModeOther) == 0 && c.MaxMsg >= MinMsg
			allowed := (w.Name == "" || c.Name == w.Name) && (find(c.Name).refuse == "" || w.Force && w.Name != "") && (find(c.Name).class != Unknown || w.Name != "")
			if c.Usable != (able && allowed) {
				t.Fatalf("%+v: %+v", w, c)
			}
			if (c.Why == "") != (i == 0 && c.Usable) {
				t.Fatalf("number %d: %+v", i, c)
			}
			if i == 0 {
				continue
			}
			if b := all[i-1]; !b.Usable && c.Usable || b.Usable == c.Usable && b.Class > c.Class {
				t.Fatalf("%+v\nis before %+v", b, c)
			}
		}
		if len(left) != 0 {
			t.Fatalf("missing: %v", left)
		}
		best, err := Best(all, w)
		if usable := len(all) > 0 && all[0].Usable; usable != (err == nil) {
			t.Fatalf("%+v, %v of %+v", best, err, all)
		}
		if ok, _ := Automatic(all); ok && (all[0].Class != Hardware || !all[0].Usable) {
			t.Fatalf("taken unasked: %+v", all[0])
		}
	})
}

// TestAsked: the capabilities that are asked for do not cost the order.
func TestAsked(t *testing.T) {
	t.Parallel()
	if Asked&CapAtomic != 0 || Asked&required != required {
		t.Errorf("asked for: %s", Asked)
	}
}

// TestRefused: each refusal has a reason, and what is not refused has none.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"shm", "sockets", "udp;ofi_rxd", "verbs;ofi_rxd"} {
		if find(name).refuse == "" {
			t.Errorf("%s is not refused", name)
		}
	}
	seen := map[string]bool{}
	for _, r := range rules {
		if (r.refuse != "") != (r.class == Refused) || seen[r.name] {
			t.Errorf("%+v", r)
		}
		seen[r.name] = true
	}
}

// TestPrint: the table has a line for each, what the library says cannot change the
// terminal, and reasons stand there once.
func TestPrint(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	list := []Provider{
		one("shm"), one("shm"), one("evil\x1b[2J\nname"),
		one("cxi", func(p *Provider) { p.Link, p.MR, p.Order = "Slingshot", MRProvKey|MREndpoint, OrderSAS }),
	}
	if err := Print(&b, Choose(list, Wish{})); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{"*  cxi", "eth0 (Slingshot)", "PROV_KEY ENDPOINT", "-  shm", `evil\x1b[2J\nname`, "cxi: no FI_ORDER_SAW"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "shm: installs"); n != 1 || strings.ContainsRune(text, '\x1b') {
		t.Errorf("%d reasons of shm in\n%s", n, text)
	}
	if n := strings.Count(text, "\n"); n != 1+len(list)+1+3 {
		t.Errorf("%d lines:\n%s", n, text)
	}
}

// TestStrings: names of bits as fi_info prints them.
func TestStrings(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]fmt.Stringer{
		"FI_MSG FI_RMA": Asked, "FI_MR_LOCAL another bit": MRLocal | MROther, "none": MR(0), "FI_CONTEXT2": ModeContext2,
		"SAS SAW": OrderSAS | OrderSAW, "fd": WaitFD, "tests and Ethernet": Ethernet,
	} {
		if got.String() != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestFromEnv: what variables say.
func TestFromEnv(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, force string
		want        Wish
		bad         bool
	}{
		{"", "", Wish{}, false},
		{"net", "0", Wish{Name: "net"}, false},
		{"shm", "1", Wish{Name: "shm", Force: true}, false},
		{"shm", "yes", Wish{Name: "shm"}, true},
	} {
		got, err := FromEnv(func(k string) string { return map[string]string{EnvName: c.name, EnvForce: c.force}[k] })
		if got != c.want || (err != nil) != c.bad || err != nil && !strings.Contains(err.Error(), `ARGON_PROVIDER_FORCE="yes"`) {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}
