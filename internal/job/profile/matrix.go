package profile

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/argon-go/argon/internal/job/where"
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
	NoCredit uint64 `json:"no_credit"` // tries to send that were refused for want of credit
	Resent   uint64 `json:"resent"`    // datagrams sent once more
}

// all is how many messages and accesses f has, and their bytes.
func (f *Flow) all() (n, bytes uint64) {
	return f.Requests + f.Replies + f.Puts + f.Gets + f.Atomics, f.Bytes + f.PutBytes + f.GetBytes
}

// add adds what o counts to f.
func (f *Flow) add(o *Flow) {
	f.Requests += o.Requests
	f.Replies += o.Replies
	f.Bytes += o.Bytes
	f.Puts += o.Puts
	f.PutBytes += o.PutBytes
	f.Gets += o.Gets
	f.GetBytes += o.GetBytes
	f.Atomics += o.Atomics
	f.NoCredit += o.NoCredit
	f.Resent += o.Resent
}

// Matrix is the traffic between the ranks of a job. Table wants Flows to groups of ranks only, as
// Sums makes them, and Pairs; Write wants all Flows.
type Matrix struct {
	Ranks int
	Flows [][]Flow // by rank, by To; without those of nothing
	Pairs [][]Flow // by rank, those with the most bytes, see Largest
}

// mostGroups is how many rows and columns of ranks a printed matrix has; mostPairs how many pairs are named.
const mostGroups, mostPairs = 16, 5

// group is how many ranks that follow each other are put together.
func group(ranks int) int { return max((ranks+mostGroups-1)/mostGroups, 1) }

// Sums adds up the flows of one rank of so many, in order of To, that go to ranks put together in a table: to the first of them.
// There are 16 at most. The result lies in list's memory.
func Sums(ranks int, list []Flow) []Flow {
	each, n := group(ranks), 0
	for i := range list {
		f := list[i]
		f.To -= f.To % each
		if n > 0 && list[n-1].To == f.To {
			list[n-1].add(&f)
			continue
		}
		list[n] = f
		n++
	}
	return list[:n]
}

// Largest are those of the flows between different ranks with the most bytes that a table names: 5 at most,
// and none if a table has each rank.
func Largest(ranks int, lists ...[]Flow) []Flow {
	if group(ranks) == 1 {
		return nil
	}
	var top []Flow
	for _, list := range lists {
		for i := range list {
			if list[i].From == list[i].To {
				continue
			}
			top = where.Insert(top, list[i], mostPairs, func(a, b *Flow) bool {
				n, x := a.all()
				k, y := b.all()
				return x > y || x == y && n > k
			})
		}
	}
	return top
}

// Table writes m for people, each line after prefix: bytes and, after a slash, messages and accesses
// of each pair of ranks, or of groups of ranks that follow each other.
func (m *Matrix) Table(w io.Writer, prefix string) error {
	var total Flow
	each := group(m.Ranks)
	groups := (m.Ranks + each - 1) / each
	cells := make([][2]uint64, groups*groups)
	for _, list := range m.Flows {
		for i := range list {
			f := &list[i]
			n, bytes := f.all()
			c := &cells[f.From/each*groups+f.To/each]
			c[0], c[1] = c[0]+bytes, c[1]+n
			total.add(f)
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%straffic of %s: %d requests and %d replies with %s, %d puts of %s, %d gets of %s, %d atomics; no credit %d times, %d datagrams again\n", prefix, plural(m.Ranks, "rank"),
		total.Requests, total.Replies, amount(total.Bytes), total.Puts, amount(total.PutBytes), total.Gets, amount(total.GetBytes), total.Atomics, total.NoCredit, total.Resent)
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
	for _, f := range Largest(m.Ranks, m.Pairs...) {
		n, bytes := f.all()
		fmt.Fprintf(&b, "%s  rank %d to %d: %s, %d messages and accesses\n", prefix, f.From, f.To, amount(bytes), n)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Write writes all of m to a file, one flow a line: as CSV if its name ends with .csv, else as JSON.
func (m *Matrix) Write(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if filepath.Ext(file) == ".csv" {
		err = m.writeCSV(w)
	} else {
		err = m.writeJSON(w)
	}
	return errors.Join(err, w.Flush(), f.Close())
}

// writeJSON writes an object of the number of ranks and an array of flows.
func (m *Matrix) writeJSON(w io.Writer) error {
	fmt.Fprintf(w, "{\"ranks\": %d, \"flows\": [", m.Ranks) // w keeps an error
	before := "\n"
	for _, list := range m.Flows {
		for i := range list {
			text, err := json.Marshal(&list[i])
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%s%s", before, text)
			before = ",\n"
		}
	}
	_, err := io.WriteString(w, "\n]}\n")
	return err
}

// writeCSV writes a line of names and one of each flow.
func (m *Matrix) writeCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	row := []string{"from", "to", "requests", "replies", "bytes", "puts", "put_bytes", "gets", "get_bytes", "atomics", "no_credit", "resent"}
	c.Write(row) // which keeps an error
	for _, list := range m.Flows {
		for i := range list {
			f := &list[i]
			row[0], row[1] = strconv.Itoa(f.From), strconv.Itoa(f.To)
			for i, v := range [...]uint64{f.Requests, f.Replies, f.Bytes, f.Puts, f.PutBytes, f.Gets, f.GetBytes, f.Atomics, f.NoCredit, f.Resent} {
				row[2+i] = strconv.FormatUint(v, 10)
			}
			c.Write(row)
		}
	}
	c.Flush()
	return c.Error()
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
