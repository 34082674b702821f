package profile

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMatrix: ranks are rows and columns, beyond sixteen in groups, and files have all figures.
func TestMatrix(t *testing.T) {
	m := Matrix{Ranks: 3}
	for rank := range 3 {
		list := []Flow{{From: rank, To: (rank + 1) % 3, Requests: 3, Bytes: 1500, Puts: 2, PutBytes: uint64(rank), NoCredit: 1, Resent: 2}}
		m.Flows, m.Pairs = append(m.Flows, Sums(3, list)), append(m.Pairs, Largest(3, list))
	}
	var b bytes.Buffer
	if err := m.Table(&b, "argon: "); err != nil {
		t.Fatal(err)
	}
	want := `argon: traffic of 3 ranks: 9 requests and 0 replies with 4.5k bytes, 6 puts of 3 bytes, 0 gets of 0 bytes, 0 atomics; no credit 3 times, 6 datagrams again
argon:   from, to       0       1       2
argon:          0       -  1.5k/5       -
argon:          1       -       -  1.5k/5
argon:          2  1.5k/5       -       -
`
	if b.String() != want {
		t.Errorf("have\n%s\nwant\n%s", &b, want)
	}

	first := Flow{From: 0, To: 65535, Gets: 1, GetBytes: 1 << 40}
	m = Matrix{Ranks: 65536, Flows: [][]Flow{{first}, {{From: 5000, To: 5000, Atomics: 7}}}}
	m.Pairs = m.Flows
	b.Reset()
	if err := m.Table(&b, ""); err != nil {
		t.Fatal(err)
	}
	if s := b.String(); strings.Count(s, "\n") != 19 || !strings.Contains(s, " 61440-65535") || !strings.Contains(s, "1.1T/1") || !strings.Contains(s, "0/7") ||
		!strings.Contains(s, "rank 0 to 65535: 1.1T bytes, 1 messages and accesses\n") {
		t.Errorf("have\n%s", s)
	}

	dir := t.TempDir()
	for _, name := range []string{"m.csv", "m.json"} {
		file := filepath.Join(dir, name)
		if err := m.Write(file); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var again struct {
			Ranks int
			Flows []Flow
		}
		if name == "m.csv" {
			if !strings.Contains(string(text), "\n0,65535,0,0,0,0,0,1,1099511627776,0,0,0\n5000,5000,0,0,0,0,0,0,0,7,0,0\n") {
				t.Errorf("%s", text)
			}
		} else if err := json.Unmarshal(text, &again); err != nil || again.Ranks != m.Ranks || len(again.Flows) != 2 || again.Flows[0] != first || strings.Count(string(text), "\n") != 4 {
			t.Errorf("%v: %s", err, text)
		}
	}
}

// TestSumsOfFlows: of the flows of a rank, those to ranks that are put together are added up, and no more than
// five pairs are kept, without the rank itself.
func TestSumsOfFlows(t *testing.T) {
	const ranks = 160
	var list []Flow
	want := make([]Flow, 16)
	for to := range ranks {
		f := Flow{From: 7, To: to, Requests: uint64(to), Replies: 2, Bytes: uint64(to * 37 % ranks), Puts: 3, PutBytes: 1, Gets: 4, GetBytes: 2, Atomics: 5, NoCredit: 6, Resent: 7}
		list = append(list, f)
		w := &want[to/10]
		w.From, w.To = 7, to/10*10
		w.add(&f)
	}
	top := Largest(ranks, list[:50], list[50:])
	for i, f := range top {
		if f.From == f.To || f.Bytes != uint64(ranks-1-i) {
			t.Errorf("%d: %+v", i, f)
		}
	}
	equal := []Flow{{To: 1}, {To: 2}, {To: 3}, {To: 4}, {To: 5}, {To: 6}}
	if len(top) != 5 || !slices.Equal(Largest(ranks, equal), equal[:5]) || Largest(16, list) != nil {
		t.Errorf("%+v, %+v", top, Largest(ranks, equal))
	}
	if got := Sums(ranks, list); !slices.Equal(got, want) {
		t.Errorf("have %+v, want %+v", got, want)
	}
}

// TestDigits: three digits and a unit.
func TestDigits(t *testing.T) {
	for v, want := range map[uint64]string{0: "0", 999: "999", 1000: "1k", 1234: "1.23k", 99949: "99.9k", 999600: "1M", 1 << 63: "9.22E"} {
		if got := digits(v); got != want {
			t.Errorf("%d is %s, want %s", v, got, want)
		}
	}
}
