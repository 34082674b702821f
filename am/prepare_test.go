package am

import (
	"errors"
	"testing"

	"github.com/argon-go/argon/conduits"
)

// TestPrepared: what Commit and Cancel refuse leaves the message prepared, and
// what has been committed or cancelled is so for good.
func TestPrepared(t *testing.T) {
	var got [][]byte
	var args []uint32
	c := Config{Handlers: []Entry{{130, "any", func(_ *Token, a []uint32, p []byte) {
		got = append(got, append([]byte(nil), p...))
		args = append(args, a...)
	}, AnyArgs, 0}}}
	alone(t, c, func(e *Messenger) {
		var none Prepared
		says(t, "commit of nothing", none.Commit(0), ErrBadArg, "not prepared")
		says(t, "cancel of nothing", none.Cancel(), ErrBadArg, "not prepared")
		for _, least := range []int{0, 1, 50, 100, 400, e.MaxMedium()} {
			p, err := e.PrepareMedium(0, 130, least, least+100_000_000, 2)
			if err != nil {
				t.Fatal(err)
			}
			n := len(p.Payload())
			if n < least || n > e.MaxMedium() {
				t.Errorf("asked for %d bytes, prepared %d", least, n)
			}
			says(t, "one too many", p.Commit(n+1, 1, 2), ErrBadArg, "commit")
			says(t, "-1", p.Commit(-1, 1, 2), ErrBadArg, "-1")
			says(t, "three arguments", p.Commit(n, 1, 2, 3), ErrBadArg, "3", "2")
			says(t, "no argument", p.Commit(n), ErrBadArg, "0", "2")
			for i := range p.Payload() {
				p.Payload()[i] = byte(i)
			}
			if err := p.Commit(least, 7, 8); err != nil {
				t.Error(err)
			}
			says(t, "twice", p.Commit(least, 7, 8), ErrBadArg, "committed")
			says(t, "cancel after commit", p.Cancel(), ErrBadArg, "committed")
			if p, err = e.PrepareMedium(0, 130, least, least, 0); err != nil {
				t.Fatal(err)
			}
			if err := p.Cancel(); err != nil {
				t.Error(err)
			}
			says(t, "cancelled twice", p.Cancel(), ErrBadArg, "cancelled")
			says(t, "commit after cancel", p.Commit(0), ErrBadArg, "cancelled")
			for e.Poll() > 0 {
			}
			if len(got) != 1 || len(got[0]) != least || len(args) != 2 || args[0] != 7 || args[1] != 8 {
				t.Fatalf("of %d bytes arrived %d messages with arguments %v", least, len(got), args)
			}
			for i, b := range got[0] {
				if b != byte(i) {
					t.Fatalf("byte %d is %d", i, b)
				}
			}
			got, args = nil, nil
		}
	})
}

// TestPrepareTakesLess: with most of the landing buffer in use, Prepare gives
// what there is, Try says that there is not enough, and a failed job ends both.
func TestPrepareTakesLess(t *testing.T) {
	errs := runJobOn(t, tiny, 2, func(int) Config {
		return Config{Handlers: []Entry{{130, "any", nop, AnyArgs, 0}}}
	}, func(e *Messenger) error {
		if e.Rank() == 1 {
			return e.Wait(nil, func() bool { return false })
		}
		most := e.MaxMedium()
		var l []Prepared
		for {
			p, ok, err := e.TryPrepareMedium(0, 130, 100, most, 0)
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if n := len(p.Payload()); n < 100 || n > most {
				t.Errorf("prepared %d bytes", n)
			}
			l = append(l, p)
		}
		if len(l) == 0 {
			t.Error("nothing could be prepared")
		}
		for i := range l {
			if err := l[i].Cancel(); err != nil {
				t.Error(err)
			}
		}
		for e.Poll() > 0 {
		}
		if p, err := e.PrepareMedium(0, 130, most, most, 0); err != nil || p.Cancel() != nil {
			t.Errorf("after all were cancelled: %v", err)
		}
		e.Conduit().Fail(errors.New("over"))
		// Room is soon used up, and then the failure shows.
		for {
			p, ok, err := e.TryPrepareMedium(1, 130, most, most, 0)
			if err != nil {
				says(t, "try after a failure", err, ErrPeer, "over", "rank 1")
				break
			}
			if !ok {
				t.Error("would block in a failed job")
				break
			}
			if err := p.Commit(1); err != nil {
				t.Error(err)
			}
		}
		for {
			p, err := e.PrepareMedium(1, 130, most, most, 0)
			if err != nil {
				says(t, "prepare after a failure", err, ErrPeer, "over", "rank 1")
				says(t, "commit after a failure", p.Commit(0), ErrBadArg, "not prepared")
				break
			}
			if err := p.Commit(1); err != nil {
				t.Error(err)
			}
		}
		return e.Conduit().Err()
	})
	for r, err := range errs {
		says(t, "the job", err, conduits.ErrPeer, "over")
		if r == 2 {
			t.Error("two ranks")
		}
	}
}
