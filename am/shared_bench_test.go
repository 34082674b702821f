package am

import (
	"testing"

	"github.com/argon-go/argon/conduits"
)

// BenchmarkShared measures the parts of a send that goroutines of a rank share: a cookie of a long
// message that the conduit still reads ("source"), and the description of what a sender
// without credit waits for ("credit"). For -cpu 1,2,4.
func BenchmarkShared(b *testing.B) {
	b.Run("source", func(b *testing.B) {
		e := &Messenger{}
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				cookie, err := e.begin("", nil)
				if err != nil {
					panic(err)
				}
				e.finish(cookie)
			}
		})
	})
	b.Run("credit", func(b *testing.B) {
		e := &Messenger{}
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				e.creditWait(1, conduits.Request)
			}
		})
	})
}
