package conformance

import (
	"bytes"
	"errors"
	"strings"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/extended/collective"
)

// addBytes is a Combine that does not care for order.
func addBytes(acc, in []byte) {
	for i := range acc {
		acc[i] += in[i]
	}
}

// thenBytes is one that does: pairs of bytes are functions x -> a*x + b, of which in is the
// one that is applied first.
func thenBytes(acc, in []byte) {
	for i := 0; i+1 < len(acc); i += 2 {
		acc[i], acc[i+1] = in[i]*acc[i], acc[i]*in[i+1]+acc[i+1]
	}
}

// collectiveModel: all collectives on bytes against what one rank alone computes, with
// random roots, lengths that take no, one and several messages, in jobs of sizes that are
// no powers of two too, and with ranks that come at different times.
func collectiveModel(c *ctx) {
	for _, n := range []int{1, 2, 3, 5, 8, 13} {
		c.stack(n, conduits.Config{}, layers{coll: true}, func(s *stack) {
			plan := c.Random(uint64(n), 1) // the same on all ranks
			own := c.Random(uint64(n), 2, uint64(s.Rank))
			for range 10 {
				k := collectiveCalls{
					stack: s, n: n, root: plan.IntN(n), key: plan.Uint64(),
					bytes: []int{0, 1, 8, 70, 1000, 20_000}[plan.IntN(6)],
				}
				for range own.IntN(4) {
					s.poll()
				}
				k.run()
			}
		})
		if c.Failed() {
			return
		}
	}
}

// collectiveCalls is one of each.
type collectiveCalls struct {
	*stack
	n, root int
	bytes   int // of a block
	key     uint64
}

// block is what rank gives for rank to.
func (k *collectiveCalls) block(rank, to int) []byte {
	return contract.Fill(make([]byte, k.bytes), contract.Mix(k.key, uint64(rank), uint64(to)), 0)
}

// blocks is f of all ranks, one behind the other.
func (k *collectiveCalls) blocks(f func(r int) []byte) []byte {
	var all []byte
	for r := range k.n {
		all = append(all, f(r)...)
	}
	return all
}

// fold combines what ranks 0 to n-1 give, the lower ones first.
func (k *collectiveCalls) fold(n int, combine collective.Combine) []byte {
	acc := k.block(n-1, 0)
	for r := n - 2; r >= 0; r-- {
		combine(acc, k.block(r, 0))
	}
	return acc
}

// check compares the result of a call.
func (k *collectiveCalls) check(call string, err error, got, want []byte) {
	k.C.Helper()
	if k.Must(err); !bytes.Equal(got, want) {
		k.Fatalf("%s of %d bytes, root %d of %d: %.60x, not %.60x", call, k.bytes, k.root, k.n, got, want)
	}
}

// run makes the calls.
func (k *collectiveCalls) run() {
	k.C.Helper()
	x, me := k.coll, k.Rank
	mine := func() []byte { return k.block(me, 0) }
	all := k.blocks(func(r int) []byte { return k.block(r, 0) })

	b := mine()
	k.check("Broadcast", x.Do(collective.Broadcast(k.root, b), nil), b, k.block(k.root, 0))
	sum := k.fold(k.n, addBytes)
	b = mine()
	if err := x.Do(collective.Reduce(k.root, b), addBytes); me == k.root {
		k.check("Reduce", err, b, sum)
	} else {
		k.Must(err)
	}
	b = mine()
	k.check("AllReduce", x.Do(collective.AllReduce(b), addBytes), b, sum)
	b = mine()
	k.check("Agree", x.Do(collective.Agree(b), addBytes), b, sum)

	var got, want []byte
	if me == k.root {
		got, want = make([]byte, len(all)), all
	}
	k.check("Gather", x.Do(collective.Gather(k.root, mine(), got), nil), got, want)
	got = make([]byte, len(all))
	own := got[me*k.bytes:][:k.bytes] // in its place already
	copy(own, mine())
	k.check("AllGather", x.Do(collective.AllGather(own, got), nil), got, all)
	var out []byte
	if me == k.root {
		out = k.blocks(func(r int) []byte { return k.block(me, r) })
	}
	got = make([]byte, k.bytes)
	k.check("Scatter", x.Do(collective.Scatter(k.root, out, got), nil), got, k.block(k.root, me))
	out = k.blocks(func(r int) []byte { return k.block(me, r) })
	got = make([]byte, len(out))
	k.check("Exchange", x.Do(collective.Exchange(out, got), nil), got, k.blocks(func(r int) []byte { return k.block(r, me) }))

	b = mine()
	k.check("Scan", x.Do(collective.Scan(b), thenBytes), b, k.fold(me+1, thenBytes))
	b, got, want = mine(), make([]byte, k.bytes), make([]byte, k.bytes)
	if me > 0 {
		want = k.fold(me, thenBytes)
	}
	err := x.Do(collective.ExclusiveScan(b, got), thenBytes)
	k.check("ExclusiveScan", err, got, want)
	k.check("ExclusiveScan's other result", err, b, k.fold(me+1, thenBytes))
}

// collectiveMismatch: calls that do not match are an error on every rank, which names the odd
// one and stays.
func collectiveMismatch(c *ctx) {
	const n, odd = 4, 3
	for what, call := range map[string]func(x *collective.Endpoint, b []byte) error{
		"another root":     func(x *collective.Endpoint, b []byte) error { return x.Do(collective.Broadcast(2, b), nil) },
		"another function": func(x *collective.Endpoint, b []byte) error { return x.Do(collective.AllReduce(b), addBytes) },
		"another size":     func(x *collective.Endpoint, b []byte) error { return x.Do(collective.Broadcast(1, b[:8]), nil) },
		"a wrong argument": func(x *collective.Endpoint, b []byte) error { return x.Do(collective.Broadcast(n, b), nil) },
	} {
		c.stack(n, conduits.Config{}, layers{coll: true}, func(s *stack) {
			b := make([]byte, 40)
			var err error
			if s.Rank == odd {
				err = call(s.coll, b)
			} else {
				err = s.coll.Do(collective.Broadcast(1, b), nil)
			}
			for range 3 { // some learn of it in a later call
				if err == nil {
					err = s.coll.Do(collective.AllReduce(b), addBytes)
				}
			}
			own := what == "a wrong argument" && s.Rank == odd // which has the reason, not ranks
			if !errors.Is(err, extended.ErrBadArg) || !own && !strings.Contains(err.Error(), "rank 3") {
				s.Errorf("%s on rank %d: rank %d says %v", what, odd, s.Rank, err)
			}
			s.Wants(s.coll.Do(collective.AllReduce(b), addBytes), extended.ErrBadArg, "a collective after %s", what)
		})
	}
}
