package hybrid

import (
	"fmt"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/udp"
)

var pair = Pair{Name: "hybrid", Near: shm.Near(), Far: udp.Far()}

// pingPong measures half a round trip of short messages between ranks 0 and 1.
func pingPong(b *testing.B, eps []conduits.Endpoint) {
	got := make([]uint32, len(eps))
	conduits.Run(eps, func(i int) {
		ep := eps[i]
		f := receiver(func(m *conduits.Message) { got[i] = m.Words[0] })
		if err := ep.Attach(conduits.AttachConfig{Receiver: f}); err != nil {
			b.Error(err)
			return
		}
		if i > 1 {
			return
		}
		words := make([]uint32, 1)
		for k := range uint32(b.N) {
			words[0] = k + 1
			if i == 1 {
				for got[i] != k+1 {
					ep.Spin()
				}
			}
			for ep.Send(1-i, conduits.Request, 1, words) != conduits.Ready {
				ep.Poll()
			}
			if i == 0 {
				for got[i] != k+1 {
					ep.Spin()
				}
			}
		}
	})
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/half-round-trip")
	for _, ep := range eps {
		if err := ep.Close(); err != nil {
			b.Error(err)
		}
	}
}

// BenchmarkNear compares two neighbours of a job of two hosts with two ranks of as
// large a job of one: three ranks, of which one rests. Runs of both must alternate
// (-count).
func BenchmarkNear(b *testing.B) {
	for _, hosts := range [][]int{{0, 0, 0}, {0, 0, 1}} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			eps, err := pair.LocalOn(hosts, conduits.Config{})
			if err != nil {
				b.Fatal(err)
			}
			pingPong(b, eps)
		})
	}
}

// BenchmarkPoll is a poll that finds nothing: with a look at the network each time,
// and as often as one is due.
func BenchmarkPoll(b *testing.B) {
	open := func(b *testing.B) *Endpoint {
		eps, err := pair.LocalOn([]int{0, 1}, conduits.Config{})
		if err != nil {
			b.Fatal(err)
		}
		conduits.Run(eps, func(i int) {
			if err := eps[i].Attach(conduits.AttachConfig{Receiver: receiver(nil)}); err != nil {
				b.Error(err)
			}
		})
		b.Cleanup(func() {
			for _, ep := range eps {
				if err := ep.Close(); err != nil {
					b.Error(err)
				}
			}
		})
		return eps[0].(*Endpoint)
	}
	b.Run("near", func(b *testing.B) {
		e := open(b)
		for b.Loop() {
			e.near.Poll()
		}
	})
	b.Run("look", func(b *testing.B) {
		e := open(b)
		for b.Loop() {
			e.look()
		}
	})
	b.Run("clock", func(b *testing.B) {
		e := open(b)
		for b.Loop() {
			e.near.Now()
		}
	})
	b.Run("poll", func(b *testing.B) {
		e := open(b)
		for b.Loop() {
			e.Poll()
		}
	})
}
