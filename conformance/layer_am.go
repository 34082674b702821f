package conformance

import (
	"os"
	"sync/atomic"
	"syscall"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/segment"
)

// amReadOnly: what is sent from and put from read-only pages.
func amReadOnly(c *ctx) {
	const n, h, back, size = 2, 220, 221, 3 * segment.PageSize
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		c.Skip("no file to map: ", err)
	}
	defer file.Close()
	page, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		c.Skip("cannot map it: ", err)
	}
	defer func() { _ = syscall.Munmap(page) }()
	var answers [n]atomic.Int32
	c.stack(n, conduits.Config{}, layers{segment: n * size, handlers: func(s *stack) []am.Entry {
		return []am.Entry{
			{Index: h, Name: "look", Args: 1, Fn: func(t *am.Token, args []uint32, payload []byte) {
				want := page[args[0]:][:len(payload)]
				if i := contract.Differ(payload, want); i >= 0 {
					s.Errorf("%v of read-only memory: byte %d is %#x, not %#x", t.Kind(), i, payload[i], want[i])
				}
				if err := t.ReplyMedium(back, want[:min(len(want), 9)]); err != nil {
					s.Errorf("reply: %v", err)
				}
			}},
			{Index: back, Name: "back", Fn: func(*am.Token, []uint32, []byte) { answers[s.Rank].Add(1); s.EP.Wake(s.Rank) }},
		}
	}}, func(s *stack) {
		total, to := int32(0), contract.At(s.Rank*size)
		for i := range 24 {
			k := 1 + s.RNG.IntN(size)
			off := s.RNG.IntN(size - k + 1)
			src, dst := page[off:][:k], i%n
			s.Must(s.am.RequestLong(dst, h, to, src, uint32(off)))
			s.Must(s.am.RequestMedium(dst, h, src[:min(k, s.am.MaxMedium())], uint32(off)))
			total += 2
			s.Wait("answers", func() bool { return answers[s.Rank].Load() == total })
			s.Must(s.ext.Put(dst, to, src))
			hd, err := s.ext.PutBulkNB(dst, to, src)
			s.Must(err)
			s.Must(s.ext.Wait(hd))
			got := make([]byte, k)
			s.Must(s.ext.Get(dst, to, got))
			if i := contract.Differ(got, src); i >= 0 {
				s.Errorf("put of read-only memory: byte %d is %#x, not %#x", i, got[i], src[i])
			}
		}
	})
}
