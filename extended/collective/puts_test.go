package collective

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/argon-go/argon/am"
	_ "github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
	"pgregory.net/rapid"
)

// registered is how many registrations the rank has had, and how many it has.
func (m *member) registered() (all uint64, now int, err error) {
	atu, err := m.e.Conduit().ATU()
	if err != nil {
		return 0, 0, err
	}
	var s segment.ATUStats
	atu.Stats(&s)
	return s.Registered, s.Regions, nil
}

// nothingRegistered is an error if some memory is.
func (m *member) nothingRegistered() error {
	if _, now, err := m.registered(); err != nil || now > 0 {
		return errors.Join(err, fmt.Errorf("%d buffers are still registered", now))
	}
	return nil
}

// nothingRead is an error if a conduit may still read what the rank has put in its last call. had says that there
// were puts before: a call drops their events only if one is left behind.
func (m *member) nothingRead(had bool) error {
	if m.work == nil {
		return nil
	}
	if p := m.work.puts; had && p == nil || p != nil && slices.ContainsFunc(p.sources, func(ev *am.Event) bool { return !ev.Done() }) {
		return errors.New("data may still be read")
	}
	return nil
}

// TestPuts has several calls of several teams under way, of blocks that are put to their place and others, and compares
// with their definitions. No buffer stays registered.
func TestPuts(t *testing.T) {
	lengths := []int{0, 36, putLeast - 2, putLeast, putLeast + 2, roomKept + 6, 150_002}
	for network, most := range map[string]int{"loop": 7, "hybrid": 4, "udp": 3} {
		t.Run(network, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				size := rapid.IntRange(2, most).Draw(t, "ranks")
				steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) begunStep {
					return begunStep{
						step: step{
							kind: rapid.SampledFrom(stepKinds).Draw(t, "kind"),
							root: rapid.IntRange(0, size-1).Draw(t, "root"),
							seed: rapid.Uint64().Draw(t, "seed"),
							n:    rapid.SampledFrom(lengths).Draw(t, "bytes"),
						},
						of:    rapid.IntRange(0, 2).Draw(t, "team"),
						nb:    rapid.Bool().Draw(t, "begun"),
						waits: rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "takes"),
					}
				}), 1, 8).Draw(t, "steps")
				skew := rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 0, 3, 50}), size, size).Draw(t, "skew")
				must(t, network, size, func(m *member) error {
					if err := beginAll(m, steps, skew); err != nil {
						return err
					}
					return m.nothingRegistered()
				})
			})
		})
	}
}

// each fills b with what rank gives in a round.
func each(b []byte, rank, round int) []byte {
	for i := range b {
		b[i] = byte(i*7 + rank*31 + round*101)
	}
	return b
}

// TestPutsReuse: ranks use their buffers, which begin anywhere, for other things as soon as a call is over, and a link
// has data in pieces and by puts in turn; every second round one rank asks for pieces.
func TestPutsReuse(t *testing.T) {
	const most = 200_000
	size := 2
	for _, network := range []string{"loop", "loop", "udp", "udp"} {
		size = 5 - size
		must(t, network, size, func(m *member) error {
			buf, all, got := make([]byte, most+1), make([]byte, size*most+1), make([]byte, size*most+1)
			for round, had := 0, false; round < 12; round++ {
				if m.rank == round%2 {
					for range round {
						runtime.Gosched()
					}
				}
				n, root := []int{8, most, putLeast + 1, 5000}[round%4], round%size
				m.apart = m.rank != 1 || round%2 == 0
				b := each(buf[round%2:][:n], m.rank, round)
				if err := m.Broadcast(root, b); err != nil {
					return err
				}
				if err := m.nothingRead(had); err != nil {
					return err
				}
				had = had || m.work != nil && m.work.puts != nil
				if m.rank == root {
					clear(b)
				} else if !bytes.Equal(b, each(make([]byte, n), root, round)) {
					return fmt.Errorf("round %d, %d bytes: another broadcast", round, n)
				}
				clear(buf)
				each(buf[:n], m.rank, round)
				if err := m.AllGather(buf[:n], all[1:][:size*n]); err != nil {
					return err
				}
				clear(buf)
				m.apart = true
				for r := range size {
					if !bytes.Equal(all[1+r*n:][:n], each(make([]byte, n), r, round)) {
						return fmt.Errorf("round %d, %d bytes: other blocks of rank %d", round, n, r)
					}
				}
				var gathered []byte
				if m.rank == root {
					gathered = got[:size*n]
				}
				if err := m.Gather(root, all[1+m.rank*n:][:n], gathered); err != nil {
					return err
				}
				if m.rank == root && !bytes.Equal(gathered, all[1:][:size*n]) {
					return fmt.Errorf("round %d, %d bytes: other blocks gathered", round, n)
				}
			}
			switch had, _, err := m.registered(); {
			case err != nil:
				return err
			case had == 0:
				return errors.New("no data were put")
			}
			return m.nothingRegistered()
		})
	}
}

// TestPutsMismatch: when calls of large blocks do not match, ranks that have said where theirs land get the error, and
// nothing stays registered, whether they wait or not.
func TestPutsMismatch(t *testing.T) {
	const n = 2 * putLeast
	for _, network := range []string{"loop", "udp"} {
		for _, nb := range []bool{false, true} {
			for r, err := range run(t, network, 4, func(m *member) error {
				a := AllGather(make([]byte, n), make([]byte, 4*n))
				if m.rank == 3 {
					a = Gather(2, make([]byte, n), nil)
				}
				err := func() error {
					if !nb {
						return m.Do(a, nil)
					}
					h, err := m.Begin(a, nil)
					if err != nil {
						return err
					}
					return h.Wait()
				}()
				return errors.Join(err, m.Leave(make([]byte, 8), sum, nil), m.nothingRegistered())
			}) {
				if err == nil || !errors.Is(err, errs.ErrBadArg) || strings.Contains(err.Error(), "registered") {
					t.Errorf("%s, without waiting %t, rank %d: %v", network, nb, r, err)
				}
			}
		}
	}
}

// invited reports whether another rank has said where its data of this one's next call land.
func (m *member) invited() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	ls := m.links
	if o := m.inFlight(m.seq + 1); o != nil {
		ls = o.links
	}
	return slices.ContainsFunc(ls, func(l *link) bool { return l.wanted.later(m.seq) && l.at != 0 })
}

// TestPutsFailure: a rank fails, or leaves, that others have told where their data land; they name it, and nothing
// stays registered.
func TestPutsFailure(t *testing.T) {
	const n, gone = 2 * putLeast, 2
	for _, network := range []string{"loop", "udp"} {
		for _, nb := range []bool{false, true} {
			for _, how := range []error{errTest, errLeft} {
				for r, err := range run(t, network, 3, func(m *member) error {
					if m.rank == gone {
						if err := m.e.Wait(nil, m.invited); err != nil {
							return err
						}
						if how == errLeft {
							m.e.Conduit().Close()
						}
						return how
					}
					a := Broadcast(gone, make([]byte, n))
					err := func() error {
						if !nb {
							return m.Do(a, nil)
						}
						h, err := m.Begin(a, nil)
						if err != nil {
							return err
						}
						return h.Wait()
					}()
					return errors.Join(err, m.nothingRegistered())
				}) {
					var p *errs.PeerError
					if r != gone && (!errors.As(err, &p) || p.Rank != gone || strings.Contains(err.Error(), "registered")) {
						t.Errorf("%s, without waiting %t, rank %d: %v", network, nb, r, err)
					}
				}
			}
		}
	}
}

// TestPutsAtOnce: goroutines of a rank make calls of large blocks at once, each of a team of its own.
func TestPutsAtOnce(t *testing.T) {
	const size, teams = 3, 4
	rounds := 20
	if conc.Race || testing.Short() {
		rounds = 5
	}
	for _, network := range []string{"loop", "udp"} {
		must(t, network, size, func(m *member) error {
			ended := make(chan error, teams)
			for k := range teams {
				team, err := m.Split(0, m.rank)
				if err != nil {
					return err
				}
				defer func() { _ = team.Close() }()
				go func() {
					ended <- func() error {
						for i := range rounds {
							s := step{kind: stepKinds[(i+k)%len(stepKinds)], root: i % size, n: putLeast + 2*k, seed: uint64(k<<8 | i)}
							if err := s.run(team, i%2 == 0); err != nil {
								return fmt.Errorf("team %d, round %d: %w", k, i, err)
							}
						}
						return nil
					}()
				}()
			}
			var err error
			for range teams {
				err = errors.Join(err, <-ended)
			}
			return err
		})
	}
}
