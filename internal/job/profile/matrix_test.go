package profile

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMatrix: ranks are rows and columns, beyond sixteen in groups, and files have all figures.
func TestMatrix(t *testing.T) {
	var texts [][]byte
	for rank := range 3 {
		text, err := json.Marshal([]Flow{{From: rank, To: (rank + 1) % 3, Requests: 3, Bytes: 1500, Puts: 2, PutBytes: uint64(rank), NoCredit: 1}})
		if err != nil {
			t.Fatal(err)
		}
		texts = append([][]byte{text}, texts...)
	}
	m, err := MergeFlows(3, texts)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := m.Table(&b, "argon: "); err != nil {
		t.Fatal(err)
	}
	want := `argon: traffic of 3 ranks: 9 requests and 0 replies with 4.5k bytes, 6 puts of 3 bytes, 0 gets of 0 bytes, 0 atomics; no credit 3 times
argon:   from, to       0       1       2
argon:          0       -  1.5k/5       -
argon:          1       -       -  1.5k/5
argon:          2  1.5k/5       -       -
`
	if b.String() != want {
		t.Errorf("have\n%s\nwant\n%s", &b, want)
	}

	m = Matrix{Ranks: 65536, Flows: []Flow{{From: 0, To: 65535, Gets: 1, GetBytes: 1 << 40}, {From: 5000, To: 5000, Atomics: 7}}}
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
		var again Matrix
		if name == "m.csv" {
			if !strings.Contains(string(text), "\n0,65535,0,0,0,0,0,1,1099511627776,0,0\n5000,5000,0,0,0,0,0,0,0,7,0\n") {
				t.Errorf("%s", text)
			}
		} else if err := json.Unmarshal(text, &again); err != nil || again.Ranks != m.Ranks || len(again.Flows) != 2 || again.Flows[0] != m.Flows[0] {
			t.Errorf("%v: %s", err, text)
		}
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
