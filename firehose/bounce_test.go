package firehose

import (
	"bytes"
	"testing"

	"github.com/argon-go/argon/conduits"
)

// TestAnswers: an answer is believed of the request that is under way to the rank that gives it, of the
// access that has the index now, and of no byte outside of it; what it says otherwise is dropped, or the
// access's error.
func TestAnswers(t *testing.T) {
	const rank, gen = 3, 7
	ok := func(gen, status, lo, hi uint32) []uint32 { return []uint32{0, gen, status, lo, hi} }
	for _, c := range []struct {
		what    string
		kind    conduits.Verb
		out     int
		sending bool
		by      int
		args    []uint32
		payload int
		over    bool   // it was the last answer
		heard   bool   // it counts as an answer
		fails   bool   // and is an error
		value   uint64 // of an atomic
	}{
		{what: "the data", kind: conduits.Get, out: 1, by: rank, args: ok(gen, bounceDone, 0, 0), payload: 16, over: true, heard: true},
		{what: "half of the data", kind: conduits.Get, out: 2, by: rank, args: ok(gen, bounceDone, 8, 0), payload: 8, heard: true},
		{what: "data while more is asked for", kind: conduits.Get, out: 1, sending: true, by: rank, args: ok(gen, bounceDone, 0, 0), payload: 8, heard: true},
		{what: "the end of a put", kind: conduits.Put, out: 1, by: rank, args: ok(gen, bounceDone, 0, 0), over: true, heard: true},
		{what: "what an atomic found", kind: conduits.Atomic, out: 1, by: rank, args: ok(gen, bounceDone, 5, 1), over: true, heard: true, value: 1<<32 | 5},
		{what: "an answer of an earlier use of the index", kind: conduits.Get, out: 1, by: rank, args: ok(gen-1, bounceDone, 0, 0), payload: 16},
		{what: "an answer of a later use of the index", kind: conduits.Put, out: 1, by: rank, args: ok(gen+1, bounceDone, 0, 0)},
		{what: "an answer of another rank", kind: conduits.Get, out: 1, by: rank + 1, args: ok(gen, bounceDone, 0, 0), payload: 16},
		{what: "an answer to nothing", kind: conduits.Get, out: 0, by: rank, args: ok(gen, bounceDone, 0, 0), payload: 16},
		{what: "data that ends behind the access", kind: conduits.Get, out: 1, by: rank, args: ok(gen, bounceDone, 8, 0), payload: 16, over: true, heard: true, fails: true},
		{what: "data far behind the access", kind: conduits.Get, out: 1, by: rank, args: ok(gen, bounceDone, 1<<32-1, 0), payload: 8, over: true, heard: true, fails: true},
		{what: "no data", kind: conduits.Get, out: 1, by: rank, args: ok(gen, bounceDone, 0, 0), over: true, heard: true, fails: true},
		{what: "memory that is not exposed", kind: conduits.Put, out: 1, by: rank, args: ok(gen, bounceNotExposed, 0, 0), over: true, heard: true, fails: true},
		{what: "a right that there is not", kind: conduits.Put, out: 1, by: rank, args: ok(gen, bounceFault, 0, 0), over: true, heard: true, fails: true},
		{what: "a word across words", kind: conduits.Atomic, out: 1, by: rank, args: ok(gen, bounceUnaligned, 0, 0), over: true, heard: true, fails: true},
		{what: "a status that there is not", kind: conduits.Put, out: 1, by: rank, args: ok(gen, 77, 0, 0), over: true, heard: true, fails: true},
	} {
		mem := make([]byte, 24) // the access is of the 16 in the middle of it
		b := &bounce{a: &conduits.Access{Verb: c.kind, Rank: rank, Mem: mem[4:20:20]}, gen: gen, out: c.out, sending: c.sending}
		over := new(bounces).answered(b, c.by, c.args, bytes.Repeat([]byte{0xee}, c.payload))
		if over != c.over {
			t.Errorf("%s ends the access: %v", c.what, over)
		}
		if heard := b.out == c.out-1; heard != c.heard {
			t.Errorf("%s counts as an answer: %v", c.what, heard)
		}
		if (b.err != nil) != c.fails || b.value != c.value && c.kind == conduits.Atomic {
			t.Errorf("%s leaves error %v and value %#x", c.what, b.err, b.value)
		}
		want := make([]byte, 24)
		if c.heard && !c.fails {
			copy(want[4+c.args[3]%16:], bytes.Repeat([]byte{0xee}, c.payload))
		}
		if !bytes.Equal(mem, want) {
			t.Errorf("%s leaves memory % x, not % x", c.what, mem, want)
		}
	}
}
