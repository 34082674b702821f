package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/errs"
)

func TestParseOptions(t *testing.T) {
	for in, want := range map[string]Options{
		"": {}, "0": {}, "1": {On: true}, "peers,json=a b": {On: true, Peers: true, JSON: "a b"},
		"traffic": {Traffic: true}, "traffic=a.csv": {Traffic: true, Flows: "a.csv"}, "1,traffic": {On: true, Traffic: true},
		"sizes,labels,1": {On: true, Sizes: true, Labels: true},
	} {
		if got, err := ParseOptions(in); got != want || err != nil {
			t.Errorf("%q is %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{"2", "peers,", "json", "json=", "1,0", "Peers", "traffic="} {
		if _, err := ParseOptions(in); !errors.Is(err, errs.ErrBadArg) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// Times fall into buckets that are an eighth wide at most, and none is lost.
func TestBuckets(t *testing.T) {
	for _, v := range []time.Duration{0, 1, 7, 8, 9, 15, 16, 17, 1000, 1 << 40, 1<<62 + 12345} {
		for _, v := range []time.Duration{v, v + v/3} {
			if top := most(bucket(v)); top < v || top-v > v/8 || v > 0 && bucket(top+1) != bucket(v)+1 && v >= 8 {
				t.Errorf("%d is in bucket %d, which ends at %d", v, bucket(v), top)
			}
		}
	}
	var r Row
	for i := range 1000 {
		r.count(uint64(i), time.Duration(i+1)*time.Microsecond)
	}
	if p := r.quantile(0.99); p < 990*time.Microsecond || p > r.Max || r.Max != time.Millisecond || r.Min != time.Microsecond {
		t.Errorf("p99 is %v of %v to %v", p, r.Min, r.Max)
	}
	if r.Sizes[0] != 1 || r.Sizes[1] != 1 || r.Sizes[256] != 256 || r.Sizes[512] != 488 {
		t.Errorf("by size: %v", r.Sizes)
	}
}

// TestMerge: rows of one place are added up, and the table says which rank came last.
func TestMerge(t *testing.T) {
	var texts [][]byte
	for rank := range 3 {
		r := NewRecorder(false)
		r.Start(0)
		for i := range 4 {
			r.Met(8, time.Duration(rank+1)*time.Duration(i+1)*time.Second, true, i == 3 && rank == 1)
		}
		r.Stop(time.Minute)
		r.Add(Put, 0, 1, 1) // not counted any more
		last := time.Duration(rank+1) * 4 * time.Second
		if rank == 1 {
			last = -1
		}
		if len(r.Times()) != 4 || r.Times()[3] != last {
			t.Errorf("rank %d was %v in its calls", rank, r.Times())
		}
		if rank == 0 {
			r.CameLast([]int{0, 2, 0, -1})
		}
		text, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	j, err := Merge(texts)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(j)
	if again, err := Merge([][]byte{text}); err != nil || again.Rows[0].Calls != 12 || again.Rows[0].P99 != 12*time.Second {
		t.Errorf("read back it is %+v, %v", again, err)
	}
	if row := j.Rows[0]; len(j.Rows) != 1 || row.Calls != 12 || row.Bytes != 96 || row.Total != time.Minute || row.Ranks != 3 || row.Min != time.Second {
		t.Errorf("together they are %+v", row)
	}
	var b bytes.Buffer
	if err := j.Table(&b, "x: ", Options{Sizes: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"x: profile of 3 ranks: 1m0s of each, of which 33% in waits", " collective ", "rank 0: 67%\n", ", collective by size: 8: 12\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %q in\n%s", want, &b)
		}
	}
	if _, err := Merge([][]byte{[]byte("{")}); !errors.Is(err, errs.ErrBadArg) {
		t.Errorf("junk: %v", err)
	}
}
