package launch

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseHosts(t *testing.T) {
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for list, want := range map[string][]Host{
		"a":                           {{Name: "a"}},
		"a:8,user@b:8":                {{Name: "a", Slots: 8}, {Name: "user@b", Slots: 8}},
		" a : 8":                      nil,
		" a:8 , b ":                   {{Name: "a", Slots: 8}, {Name: "b"}},
		"[fd00::5]:4,[fd00::6]":       {{Name: "fd00::5", Slots: 4}, {Name: "fd00::6"}},
		"fd00::5,user@fd00::6":        {{Name: "fd00::5"}, {Name: "user@fd00::6"}},
		"user@[fd00::5]:4":            {{Name: "user@fd00::5", Slots: 4}},
		"10.1.2.3:2,10.1.2.4":         {{Name: "10.1.2.3", Slots: 2}, {Name: "10.1.2.4"}},
		"fd00::5,[fd00:0::5]:2":       {{Name: "fd00::5", Slots: 3}},
		"::ffff:10.1.2.3,10.1.2.3":    {{Name: "10.1.2.3", Slots: 2}},
		"a,b,a:3,a":                   {{Name: "a", Slots: 5}, {Name: "b"}},
		"localhost:2,LOCALHOST":       {{Name: "localhost", Slots: 2, Here: true}, {Name: "LOCALHOST", Here: true}},
		"localhost,localhost:3":       {{Name: "localhost", Here: true}, {Name: "localhost", Slots: 3, Here: true}},
		"127.0.0.2:2,[::1]:3,::1":     {{Name: "127.0.0.2", Slots: 2, Here: true}, {Name: "::1", Slots: 3, Here: true}, {Name: "::1", Here: true}},
		"user@localhost":              {{Name: "user@localhost"}},
		"ip6-localhost:2,a.localhost": {{Name: "ip6-localhost", Slots: 2, Here: true}, {Name: "a.localhost", Here: true}},
		"localhost6.localdomain":      {{Name: "localhost6.localdomain", Here: true}},
		"mylocalhost,localhostess":    {{Name: "mylocalhost"}, {Name: "localhostess"}},
		"fe80::1%eth0,[fe80::2%1]:2":  {{Name: "fe80::1%eth0"}, {Name: "fe80::2%1", Slots: 2}},
		own + ":2," + own:             {{Name: own, Slots: 3, Here: true}},
		"":                            nil,
		",":                           nil,
		"a:":                          nil,
		"a:-1":                        nil,
		"a:1:2":                       nil,
		":3":                          nil,
		"@a":                          nil,
		"user@":                       nil,
		"a b":                         nil,
		"$(reboot)":                   nil,
		"a'":                          nil,
		"-l":                          nil,
		"-l@a":                        nil,
		"[]":                          nil,
		"[a]":                         nil,
		"[10.1.2.3]":                  nil,
		"[fd00::5]8":                  nil,
		"[fd00::5]:":                  nil,
		"a\x00":                       nil,
	} {
		got, err := ParseHosts(list)
		if (err == nil) != (want != nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("ParseHosts(%q) = %+v, %v; want %+v", list, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "-hosts") {
			t.Errorf("%v does not name the flag", err)
		}
	}
}

func TestParseHostfile(t *testing.T) {
	got, err := parseHostfile("# nodes\na\n\tb:2 # two\r\n\nc slots=3\nuser@[fd00::5] slots=4#x\na\n")
	want := []Host{{Name: "a", Slots: 2}, {Name: "b", Slots: 2}, {Name: "c", Slots: 3}, {Name: "user@fd00::5", Slots: 4}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// Whatever a list of hosts is read as names hosts that ssh cannot take for
// options, and a shell for nothing at all.
func FuzzHosts(f *testing.F) {
	for _, s := range []string{"a:8,b", "[fd00::5]:4", "user@10.0.0.1 slots=3", "-x", "fe80::1%$(id)", "$(id)@10.0.0.1", "localhost\nlocalhost", "a:\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		one, err1 := ParseHosts(s)
		two, err2 := parseHostfile(s)
		for _, h := range slices.Concat(one, two) {
			if h.Name == "" || h.Name[0] == '-' || strings.ContainsAny(h.Name, " \t\n\x00'\"$`\\;&|<>()") || h.Slots < 0 {
				t.Errorf("%q is read as %+v", s, h)
			}
		}
		if err1 == nil && len(one) == 0 || err2 == nil && len(two) == 0 {
			t.Errorf("%q has no hosts, and no error", s)
		}
	})
}

// Ranks fill the slots in order, each once, and only hosts with ranks are used.
func TestPlacement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Config
		var slots []int // one entry for each slot: the host
		c.PerHost = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "ppn")
		for i := range rapid.IntRange(1, 6).Draw(t, "hosts") {
			h := Host{Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")}
			if n := rapid.IntRange(0, 4).Draw(t, "slots"); n == 0 || n >= c.PerHost {
				h.Slots = n
			}
			n := max(h.Slots, 1)
			if c.PerHost > 0 {
				n = c.PerHost
			}
			for range n {
				slots = append(slots, i)
			}
			c.Hosts = append(c.Hosts, h)
		}
		c.Size = rapid.IntRange(0, len(slots)+2).Draw(t, "size")
		places, err := c.place()
		if c.Size > len(slots) {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d ranks for %d slots", c.Size, len(slots))) {
				t.Fatalf("%d ranks in %d slots: %v", c.Size, len(slots), err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		size := c.Size
		if size == 0 {
			size = len(slots)
		}
		var got []int
		labels := map[string]bool{}
		for i, p := range places {
			if p.index != i || p.first != len(got) || p.size < 1 || labels[p.label] || p.Host != c.Hosts[i] {
				t.Fatalf("placement %d is %+v", i, p)
			}
			labels[p.label] = true
			for range p.size {
				got = append(got, i)
			}
		}
		if !slices.Equal(got, slots[:size]) {
			t.Fatalf("ranks are on %v, want %v", got, slots[:size])
		}
	})
}

func TestSplitWords(t *testing.T) {
	for s, want := range map[string][]string{
		"":                         nil,
		"  ":                       nil,
		"ssh":                      {"ssh"},
		" ssh  -p\t2222 ":          {"ssh", "-p", "2222"},
		`a 'b c' "d e" f\ g`:       {"a", "b c", "d e", "f g"},
		`'a'"b"c ''  ""`:           {"abc", "", ""},
		`'\' "\"" "\\" "\x" \\ \'`: {`\`, `"`, `\`, `\x`, `\`, `'`},
		"'$x' \"`y`\"":             {"$x", "`y`"},
		"a\\\nb":                   {"a\nb"},
	} {
		if got, err := splitWords(s); err != nil || !slices.Equal(got, want) {
			t.Errorf("splitWords(%q) = %q, %v; want %q", s, got, err, want)
		}
	}
	for _, s := range []string{"'", `"`, `a "b`, `\`, `"\`, `'a\`} {
		if got, err := splitWords(s); err == nil {
			t.Errorf("splitWords(%q) = %q, want an error", s, got)
		}
	}
}

// Words that are quoted in either way read back.
func TestWordsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.String(), 1, 5).Draw(t, "words")
		var quoted []string
		for _, w := range words {
			if rapid.Bool().Draw(t, "single") {
				quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
			} else {
				quoted = append(quoted, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(w)+`"`)
			}
		}
		if got, err := splitWords(strings.Join(quoted, " ")); err != nil || !slices.Equal(got, words) {
			t.Fatalf("%q is read as %q, %v", quoted, got, err)
		}
	})
}
