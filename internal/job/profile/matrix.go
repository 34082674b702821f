package profile

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Flow is what one rank has sent to another one, and accessed of it, as its endpoint has counted.
type Flow struct {
	From     int    `json:"from"`
	To       int    `json:"to"`
	Requests uint64 `json:"requests"`
	Replies  uint64 `json:"replies"`
	Bytes    uint64 `json:"bytes"` // payloads of both
	Puts     uint64 `json:"puts"`
	PutBytes uint64 `json:"put_bytes"`
	Gets     uint64 `json:"gets"`
	GetBytes uint64 `json:"get_bytes"` // which went from To to From
	Atomics  uint64 `json:"atomics"`
	NoCredit uint64 `json:"no_credit"` // times that a message had to wait for credit
}

// all is how many messages and accesses f has, and their bytes.
func (f *Flow) all() (n, bytes uint64) {
	return f.Requests + f.Replies + f.Puts + f.Gets + f.Atomics, f.Bytes + f.PutBytes + f.GetBytes
}

// Matrix is the traffic between the ranks of a job.
type Matrix struct {
	Ranks int    `json:"ranks"`
	Flows []Flow `json:"flows"` // those of nothing left out, by From and To
}

// MergeFlows makes a Matrix of what each rank has encoded as JSON: its []Flow.
func MergeFlows(ranks int, texts [][]byte) (Matrix, error) {
	m := Matrix{Ranks: ranks}
	for _, text := range texts {
		var list []Flow
		if err := json.Unmarshal(text, &list); err != nil {
			return m, err
		}
		m.Flows = append(m.Flows, list...)
	}
	slices.SortFunc(m.Flows, func(a, b Flow) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return m, nil
}

// mostGroups is how many rows and columns of ranks a printed matrix has; mostPairs how many pairs are named.
const mostGroups, mostPairs = 16, 5

// Table writes m for people, each line after prefix: bytes and, after a slash, messages and accesses
// of each pair of ranks, or of groups of ranks that follow each other.
func (m *Matrix) Table(w io.Writer, prefix string) error {
	var total Flow
	each := max((m.Ranks+mostGroups-1)/mostGroups, 1)
	groups := (m.Ranks + each - 1) / each
	cells := make([][2]uint64, groups*groups)
	for i := range m.Flows {
		f := &m.Flows[i]
		n, bytes := f.all()
		c := &cells[f.From/each*groups+f.To/each]
		c[0], c[1] = c[0]+bytes, c[1]+n
		total.Requests, total.Replies, total.Bytes = total.Requests+f.Requests, total.Replies+f.Replies, total.Bytes+f.Bytes
		total.Puts, total.PutBytes = total.Puts+f.Puts, total.PutBytes+f.PutBytes
		total.Gets, total.GetBytes = total.Gets+f.Gets, total.GetBytes+f.GetBytes
		total.Atomics, total.NoCredit = total.Atomics+f.Atomics, total.NoCredit+f.NoCredit
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%straffic of %s: %d requests and %d replies with %s, %d puts of %s, %d gets of %s, %d atomics; no credit %d times\n", prefix, plural(m.Ranks, "rank"),
		total.Requests, total.Replies, amount(total.Bytes), total.Puts, amount(total.PutBytes), total.Gets, amount(total.GetBytes), total.Atomics, total.NoCredit)
	name := func(g int) string {
		if first, last := g*each, min((g+1)*each, m.Ranks)-1; last > first {
			return fmt.Sprintf("%d-%d", first, last)
		}
		return strconv.Itoa(g * each)
	}
	var rows bytes.Buffer
	t := tabwriter.NewWriter(&rows, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "from, to\t")
	for g := range groups {
		fmt.Fprintf(t, "%s\t", name(g))
	}
	fmt.Fprintln(t)
	for g := range groups {
		fmt.Fprintf(t, "%s\t", name(g))
		for _, c := range cells[g*groups : (g+1)*groups] {
			if c == [2]uint64{} {
				fmt.Fprint(t, "-\t")
			} else {
				fmt.Fprintf(t, "%s/%s\t", digits(c[0]), digits(c[1]))
			}
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(rows.String()) {
		fmt.Fprintf(&b, "%s%s", prefix, line)
	}
	if each > 1 {
		for _, f := range m.largest() {
			n, bytes := f.all()
			fmt.Fprintf(&b, "%s  rank %d to %d: %s, %d messages and accesses\n", prefix, f.From, f.To, amount(bytes), n)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// largest are the pairs of different ranks with the most bytes.
func (m *Matrix) largest() []Flow {
	list := slices.DeleteFunc(slices.Clone(m.Flows), func(f Flow) bool { return f.From == f.To })
	slices.SortStableFunc(list, func(a, b Flow) int {
		n, x := a.all()
		k, y := b.all()
		return cmp.Or(cmp.Compare(y, x), cmp.Compare(k, n))
	})
	return list[:min(len(list), mostPairs)]
}

// Write writes all of m to a file: as CSV if its name ends with .csv, else as JSON.
func (m *Matrix) Write(file string) error {
	if filepath.Ext(file) != ".csv" {
		text, err := json.MarshalIndent(m, "", " ")
		if err != nil {
			return err
		}
		return os.WriteFile(file, append(text, '\n'), 0o666)
	}
	var b bytes.Buffer
	c := csv.NewWriter(&b)
	rows := [][]string{{"from", "to", "requests", "replies", "bytes", "puts", "put_bytes", "gets", "get_bytes", "atomics", "no_credit"}}
	for _, f := range m.Flows {
		row := []string{strconv.Itoa(f.From), strconv.Itoa(f.To)}
		for _, v := range []uint64{f.Requests, f.Replies, f.Bytes, f.Puts, f.PutBytes, f.Gets, f.GetBytes, f.Atomics, f.NoCredit} {
			row = append(row, strconv.FormatUint(v, 10))
		}
		rows = append(rows, row)
	}
	if err := c.WriteAll(rows); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o666)
}

// digits is v in three digits and a power of 1000.
func digits(v uint64) string {
	if v < 1000 {
		return strconv.FormatUint(v, 10)
	}
	f, unit := float64(v), -1
	for ; f >= 999.5 && unit < len("kMGTPE")-1; unit++ {
		f /= 1000
	}
	return strconv.FormatFloat(f, 'g', 3, 64) + "kMGTPE"[unit:unit+1]
}

// amount is so many bytes.
func amount(v uint64) string {
	if v == 1 {
		return "1 byte"
	}
	return digits(v) + " bytes"
}
