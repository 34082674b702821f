package am

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestDigest compares tables that are equal or differ in one thing: their digests
// are equal exactly if their texts are.
func TestDigest(t *testing.T) {
	attached := func(t *rapid.T, entries []Entry) *Messenger {
		e := &Messenger{}
		if err := e.fillTable(&Config{Handlers: entries}); err != nil {
			t.Fatal(err)
		}
		return e
	}
	rapid.Check(t, func(t *rapid.T) {
		var one []Entry
		for i := range rapid.IntRange(1, 3).Draw(t, "handlers") {
			one = append(one, Entry{
				Index: HandlerID(FirstClient + 4*i),
				Name:  rapid.SampledFrom([]string{"a", "b", "ab", "a\x80", "\x00"}).Draw(t, "name"),
				Args:  rapid.IntRange(AnyArgs, 1).Draw(t, "args"),
				Kinds: rapid.SampledFrom([]Kind{0, Short, Short | Request}).Draw(t, "kinds"),
				Fn:    func(*Token, []uint32, []byte) {},
			})
		}
		other := slices.Clone(one)
		x := &other[rapid.IntRange(0, len(other)-1).Draw(t, "which")]
		switch rapid.IntRange(0, 5).Draw(t, "change") {
		case 0:
			x.Index++
		case 1:
			x.Name += "b"
		case 2:
			x.Args++
		case 3:
			x.Kinds ^= Medium
		case 4:
			other = other[:len(other)-1]
		}
		a, b := attached(t, one), attached(t, other)
		if (a.table.digest == b.table.digest) != (a.table.signatures() == b.table.signatures()) {
			t.Fatalf("digests %x and %x of\n%s\n%s", a.table.digest, b.table.digest, a.table.signatures(), b.table.signatures())
		}
	})
}
