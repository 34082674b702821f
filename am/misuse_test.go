package am

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/segment"
)

func nop(*Token, []uint32, []byte) {}

// says fails the test unless err wraps kind and contains all of parts.
func says(t *testing.T, what string, err, kind error, parts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: error %v, want one that wraps %q", what, err, kind)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%s: %q does not say %q", what, err, p)
		}
	}
}

// alone runs body on the only rank of a job.
func alone(t *testing.T, c Config, body func(e *Messenger)) {
	t.Helper()
	job(t, 1, func(int) Config { return c }, func(e *Messenger) error { body(e); return nil })
}

// TestRefusedTables: what is wrong with one rank's own table.
func TestRefusedTables(t *testing.T) {
	many := make([]Entry, NumHandlers-FirstClient+1)
	for i := range many {
		many[i] = Entry{Name: fmt.Sprint(i), Fn: nop}
	}
	for _, c := range []struct {
		what  string
		c     Config
		kind  error
		parts []string
	}{
		{"a reserved index", Config{Handlers: []Entry{{127, "f", nop, 0, 0}}}, ErrBadArg, []string{`"f"`, "127", "128..255"}},
		{"a runtime handler of a client's index", Config{Runtime: []Entry{{128, "f", nop, 0, 0}}}, ErrBadArg, []string{`"f"`, "128", "16..127"}},
		{"a runtime handler of an index of ours", Config{Runtime: []Entry{{15, "f", nop, 0, 0}}}, ErrBadArg, []string{`"f"`, "15", "16..127"}},
		{"a runtime handler in another's range", Config{Runtime: []Entry{{32, "barrier.arrive", nop, 0, 0}}}, ErrBadArg, []string{`"barrier.arrive"`, "index 32", "package extended", "those of package barrier are 16..31"}},
		{"another layer's handler in a range", Config{Runtime: []Entry{{95, "mine.push", nop, 0, 0}}}, ErrBadArg, []string{`"mine.push"`, "index 95", "package aggregate", "those of other layers are 96..111"}},
		{"a runtime handler beside its range", Config{Runtime: []Entry{{111, "firehose.move", nop, 0, 0}}}, ErrBadArg, []string{"index 111", "other layers", "those of package firehose are 112..127"}},
		{"a runtime handler of this package's name", Config{Runtime: []Entry{{96, "am.mine", nop, 0, 0}}}, ErrBadArg, []string{"other layers", "those of package am are 0..15"}},
		{"a runtime index twice", Config{Runtime: []Entry{{16, "barrier.a", nop, 0, 0}, {16, "barrier.b", nop, 0, 0}}}, ErrBadArg, []string{"16", `"barrier.a"`, `"barrier.b"`}},
		{"an index twice", Config{Handlers: []Entry{{200, "f", nop, 0, 0}, {200, "g", nop, 0, 0}}}, ErrBadArg, []string{"200", `"f"`, `"g"`}},
		{"no function", Config{Handlers: []Entry{{200, "f", nil, 0, 0}}}, ErrBadArg, []string{"200", "f"}},
		{"no name", Config{Handlers: []Entry{{200, "", nop, 0, 0}}}, ErrBadArg, []string{"200", "name"}},
		{"a name of two lines", Config{Handlers: []Entry{{200, "a\nb", nop, 0, 0}}}, ErrBadArg, []string{"200", `a\nb`}},
		{"17 arguments", Config{Handlers: []Entry{{200, "f", nop, 17, 0}}}, ErrBadArg, []string{"200", "17", "0..16"}},
		{"-2 arguments", Config{Handlers: []Entry{{200, "f", nop, -2, 0}}}, ErrBadArg, []string{"200", "-2"}},
		{"too many handlers", Config{Handlers: many}, ErrResource, []string{`"128"`, "128"}},
	} {
		eps, err := shm.Local(1, conduits.Config{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Attach(eps[0], c.c)
		says(t, c.what, err, c.kind, append(c.parts, "am: ")...)
	}
}

// TestChosenIndices: index 0 takes the highest free one, in order.
func TestChosenIndices(t *testing.T) {
	h := []Entry{{Name: "a", Fn: nop}, {Index: 254, Name: "b", Fn: nop}, {Name: "c", Fn: nop}}
	alone(t, Config{Handlers: h}, func(e *Messenger) {
		if h[0].Index != 255 || h[2].Index != 253 {
			t.Errorf("chosen %d and %d, want 255 and 253", h[0].Index, h[2].Index)
		}
		if e.handlerName(253) != "c" || e.handlerName(252) != "" {
			t.Errorf("names %q and %q", e.handlerName(253), e.handlerName(252))
		}
	})
}

// TestDifferentTables: every rank is told where tables differ, however.
func TestDifferentTables(t *testing.T) {
	list := ""
	for i := range 40 {
		list += fmt.Sprintf("item %d; ", i)
	}
	long := make([]Entry, 100) // larger than one medium message of a tiny job
	for i := range long {
		long[i] = Entry{HandlerID(150 + i), fmt.Sprintf("handler number %d", i), nop, AnyArgs, 0}
	}
	last := append([]Entry(nil), long...)
	last[99].Name = "odd one"
	base := []Entry{{200, "f", nop, 2, 0}, {201, "g", nop, AnyArgs, Short}}
	for _, c := range []struct {
		what  string
		all   []Entry
		odd   []Entry // of the second last rank
		parts []string
	}{
		{"name", base, []Entry{{200, "h", nop, 2, 0}, base[1]}, []string{`handler 200 "h"`, `200 "f"`}},
		{"arguments", base, []Entry{{200, "f", nop, 3, 0}, base[1]}, []string{`200 "f" args 3`, `200 "f" args 2`}},
		{"kinds", base, []Entry{{200, "f", nop, 2, Long | Reply}, base[1]}, []string{`200 "f" args 2 kinds long|reply`, "short|medium|long|request|reply"}},
		{"index", base, []Entry{base[0], {202, "g", nop, AnyArgs, Short}}, []string{`handler 202 "g"`, `201 "g"`}},
		{"one less", base, base[:1], []string{"has handler none", `201 "g"`}},
		{"one more", base, append([]Entry{{210, "more", nop, 0, 0}}, base...), []string{`handler 210 "more"`, "rank 0 has none"}},
		{
			"a list amid a name",
			[]Entry{{200, list + "this one", nop, 0, 0}},
			[]Entry{{200, list + "that one" + list, nop, 0, 0}},
			[]string{`200 "item 0; `, `... that one`, `... this one" args 0`},
		},
		{"the last of many", long, last, []string{`249 "odd one"`, `249 "handler number 99"`}},
	} {
		for _, n := range []int{2, 3, 8, 13} {
			errs := runJobOn(t, tiny, n, func(rank int) Config {
				h := c.all
				if rank == n-1 || rank == n-2 && n > 2 {
					h = c.odd
				}
				return Config{Handlers: h}
			}, func(*Messenger) error { return nil })
			for r, err := range errs {
				says(t, fmt.Sprintf("%s: rank %d of %d", c.what, r, n), err, ErrBadArg, append(c.parts, "am: handler tables differ", fmt.Sprintf("rank %d has", max(n-2, 1)))...)
			}
		}
	}
}

// TestLargeEqualTables: a table of many messages is compared as a whole.
func TestLargeEqualTables(t *testing.T) {
	for r, err := range runJobOn(t, tiny, 9, func(rank int) Config {
		var h []Entry
		for i := range NumHandlers - FirstClient {
			h = append(h, Entry{HandlerID(FirstClient + i), strings.Repeat("long name ", 9), nop, i % 17, Kind(i % 32)})
		}
		return Config{Handlers: h}
	}, func(*Messenger) error { return nil }) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestRefusedRequests: nothing is sent, nothing breaks, and the error names
// the value and the limit.
func TestRefusedRequests(t *testing.T) {
	const size = 4 * segment.PageSize
	got := 0
	count := func(*Token, []uint32, []byte) { got++ }
	c := Config{SegmentSize: size, Handlers: []Entry{
		{130, "any", count, AnyArgs, 0},
		{131, "two", count, 2, 0},
		{132, "only short", count, AnyArgs, Short},
		{133, "only long", count, AnyArgs, Long},
		{134, "only reply", count, AnyArgs, Reply},
	}}
	alone(t, c, func(e *Messenger) {
		var ev Event
		base, end := segment.AttachBase, segment.AttachBase+size
		p := make([]byte, e.MaxMedium()+1)
		args := make([]uint32, 17)
		try := func(_ bool, err error) error { return err }
		prepared := func(_ Prepared, err error) error { return err }
		tryPrepared := func(_ Prepared, _ bool, err error) error { return err }
		for _, x := range []struct {
			what  string
			err   error
			parts []string
		}{
			{"rank 1 of 1", e.RequestShort(1, 130), []string{"rank 1", "0..0"}},
			{"rank -1", e.RequestShort(-1, 130), []string{"rank -1"}},
			{"rank 1 of 1, medium", e.RequestMedium(1, 130, nil), []string{"rank 1"}},
			{"rank 1 of 1, long", e.RequestLong(1, 130, base, nil), []string{"rank 1"}},
			{"rank 1 of 1, try", try(e.TryRequestShort(1, 130)), []string{"rank 1"}},
			{"rank 1 of 1, prepared", prepared(e.PrepareMedium(1, 130, 0, 0, 0)), []string{"rank 1"}},
			{"unregistered", e.RequestShort(0, 140), []string{"140", "no handler"}},
			{"one of ours", e.RequestMedium(0, 0, nil, 1, 2), []string{"index 0", "no handler"}},
			{"17 arguments", e.RequestShort(0, 130, args...), []string{"17 arguments", "16"}},
			{"17 arguments, medium", e.RequestMedium(0, 130, nil, args...), []string{"17 arguments", "16"}},
			{"17 arguments, long", e.RequestLong(0, 130, base, nil, args...), []string{"17 arguments", "16"}},
			{"17 arguments, prepared", prepared(e.PrepareMedium(0, 130, 0, 0, 17)), []string{"17 arguments", "16"}},
			{"one argument for two", e.RequestShort(0, 131, 1), []string{"131 (two)", "1 arguments", "takes 2"}},
			{"medium for a short one", e.RequestMedium(0, 132, nil), []string{"132 (only short)", "accepts only", "short|request|reply"}},
			{"long for a short one", e.RequestLong(0, 132, base, nil), []string{"132 (only short)"}},
			{"short for a long one", try(e.TryRequestShort(0, 133)), []string{"133 (only long)"}},
			{"a request for a reply's", e.RequestShort(0, 134), []string{"134 (only reply)", "short|medium|long|reply"}},
			{"too large a payload", e.RequestMedium(0, 130, p), []string{fmt.Sprint(len(p)), fmt.Sprint(e.MaxMedium()), "MaxMedium"}},
			{"too large a payload, try", try(e.TryRequestMedium(0, 130, p)), []string{fmt.Sprint(len(p))}},
			{"too large a payload, prepared", prepared(e.PrepareMedium(0, 130, len(p), len(p), 0)), []string{fmt.Sprint(len(p))}},
			{"least -1", prepared(e.PrepareMedium(0, 130, -1, 5, 0)), []string{"-1"}},
			{"least above most", tryPrepared(e.TryPrepareMedium(0, 130, 6, 5, 0)), []string{"6", "5"}},
			{"-1 arguments", prepared(e.PrepareMedium(0, 130, 0, 0, -1)), []string{"-1"}},
			{"before the segment", e.RequestLong(0, 130, base-1, p[:8]), []string{"outside the segment of rank 0", fmt.Sprint(size), "-segment"}},
			{"address 0", e.RequestLong(0, 130, 0, p[:8]), []string{"outside the segment"}},
			{"at the end", e.RequestLong(0, 130, end, p[:1]), []string{"outside the segment"}},
			{"across the end", e.RequestLong(0, 130, end-7, p[:8]), []string{"outside the segment", "length 8"}},
			{"after the end", e.RequestLong(0, 130, end+4096, p[:8]), []string{"outside the segment"}},
			{"wrapping", e.RequestLong(0, 130, ^segment.NLA(3), p[:8]), []string{"outside the segment"}},
			{"wrapping by a segment", e.RequestLong(0, 130, base-4, p[:8]), []string{"outside the segment"}},
			{"outside, try", try(e.TryRequestLong(0, 130, end, p[:8], &ev)), []string{"outside the segment"}},
			{"outside, nb", e.RequestLongNB(0, 130, end, p[:8], &ev), []string{"outside the segment"}},
		} {
			says(t, x.what, x.err, ErrBadArg, append(x.parts, "am: ")...)
		}
		if !ev.Done() {
			t.Error("the event of a message that was refused is pending")
		}
		ev.pending.Store(true)
		says(t, "an event in use", e.RequestLongNB(0, 130, base, p[:8], &ev), ErrBadArg, "in use")
		ev.pending.Store(false)
		if e.Poll(); got != 0 {
			t.Errorf("%d of them were sent", got)
		}
		// Zero bytes need no segment, and the address arrives.
		for _, to := range []segment.NLA{base + 1, end, end + 5, 0, 7, ^segment.NLA(0)} {
			if err := e.RequestLong(0, 130, to, nil); err != nil {
				t.Errorf("zero bytes at %v: %v", to, err)
			}
		}
		for got < 6 {
			e.Poll()
		}
		if err := e.Conduit().Err(); err != nil {
			t.Errorf("the job failed: %v", err)
		}
	})
}

// TestRightsOfLong: a segment that may not be written takes no long message.
func TestRightsOfLong(t *testing.T) {
	job(t, 2, func(rank int) Config {
		return Config{SegmentSize: segment.PageSize, Rights: segment.RightRead, Handlers: []Entry{{130, "any", nop, AnyArgs, 0}}}
	}, func(e *Messenger) error {
		says(t, "read only", e.RequestLong(1-e.Rank(), 130, segment.AttachBase, make([]byte, 1)), ErrBadArg, fmt.Sprintf("rank %d", 1-e.Rank()), "write right")
		if err := e.RequestLong(1-e.Rank(), 130, segment.AttachBase, nil); err != nil {
			t.Errorf("zero bytes: %v", err)
		}
		return nil
	})
}

// TestRulesOfHandlers: breaking a rule in a handler is an error that names the
// handler there, and fails the job with the same words everywhere.
func TestRulesOfHandlers(t *testing.T) {
	var kept *Token
	for _, c := range []struct {
		what  string
		debug bool
		by    Kind // short request unless told otherwise
		do    func(tk *Token) error
		parts []string
	}{
		{"second reply", false, 0, func(tk *Token) error {
			if err := tk.ReplyShort(hDone); err != nil {
				return err
			}
			return tk.ReplyShort(hDone)
		}, []string{"second reply", "128 (bad)"}},
		{"second reply, medium", false, 0, func(tk *Token) error {
			if err := tk.ReplyMedium(hDone, nil); err != nil {
				return err
			}
			return tk.ReplyMedium(hDone, nil)
		}, []string{"second reply", "128 (bad)"}},
		{"second reply, long", false, 0, func(tk *Token) error {
			if err := tk.ReplyLong(hDone, 0, nil); err != nil {
				return err
			}
			return tk.ReplyLong(hDone, 0, nil)
		}, []string{"second reply", "128 (bad)"}},
		{"second reply, prepared", false, 0, func(tk *Token) error {
			p, err := tk.PrepareMedium(hDone, 1, 1, 0)
			if err != nil {
				return err
			}
			_, err = tk.PrepareMedium(hDone, 1, 1, 0)
			return errors.Join(p.Commit(1), err)
		}, []string{"second reply", "128 (bad)"}},
		{
			"reply from a reply", false, Reply, func(tk *Token) error { return tk.ReplyShort(hDone) },
			[]string{"128 (bad)", "runs for a reply"},
		},
		{
			"prepare in a reply", false, Reply, func(tk *Token) error { _, err := tk.PrepareMedium(hDone, 0, 0, 0); return err },
			[]string{"128 (bad)", "runs for a reply"},
		},
		{
			"a token kept", false, 0, func(tk *Token) error { kept = tk; return nil },
			[]string{"128 (bad)", "has returned"},
		},
		{
			"wait in a handler", false, 0, func(tk *Token) error { return tk.Messenger().Wait(nil, func() bool { return false }) },
			[]string{"wait inside handler 128 (bad)", "must not block"},
		},
		{
			"wait in a reply's handler", false, Reply, func(tk *Token) error { return tk.Messenger().Wait(nil, func() bool { return false }) },
			[]string{"wait inside handler 128 (bad)", "must not block"},
		},
		{"a request in a handler that would block", false, 0, func(tk *Token) error {
			for {
				if err := tk.Messenger().RequestShort(tk.Messenger().Rank(), hEchoed); err != nil {
					return err
				}
			}
		}, []string{"short request inside handler 128 (bad)"}},
		{"a long request in a handler that would block", false, 0, func(tk *Token) error {
			for {
				if err := tk.Messenger().RequestLong(tk.Messenger().Rank(), hEchoed, 0, nil); err != nil {
					return err
				}
			}
		}, []string{"long request inside handler 128 (bad)"}},
		{
			"a request in a handler", false, 0, func(tk *Token) error { return tk.Messenger().RequestShort(0, hEchoed) },
			[]string{"short request inside handler 128 (bad)"},
		},
		{
			"a try in a handler", false, 0, func(tk *Token) error { _, err := tk.Messenger().TryRequestMedium(0, hEchoed, nil); return err },
			[]string{"medium request inside handler 128 (bad)"},
		},
		{
			"a poll in a handler", false, 0, func(tk *Token) error { tk.Messenger().Poll(); return tk.Messenger().Conduit().Err() },
			[]string{"poll inside handler 128 (bad)"},
		},
		{"a failed reply that is dropped", false, 0, func(tk *Token) error {
			says(t, "a failed reply that is dropped", tk.ReplyShort(250), ErrBadArg, "250", "no handler")
			return nil
		}, []string{"128 (bad) did not reply", "250"}},
		{"a failed long reply that is dropped", false, 0, func(tk *Token) error {
			says(t, "a failed long reply that is dropped", tk.ReplyLong(hDone, 5, make([]byte, 9)), ErrBadArg, "outside the segment")
			return nil
		}, []string{"128 (bad) did not reply", "outside the segment"}},
		{"a prepared reply of -1 arguments that is dropped", false, 0, func(tk *Token) error {
			_, err := tk.PrepareMedium(hDone, 0, 0, -1)
			says(t, "a prepared reply of -1 arguments", err, ErrBadArg, "-1 arguments")
			return nil
		}, []string{"128 (bad) did not reply", "-1 arguments"}},
		{
			"a prepared reply that is left", false, 0, func(tk *Token) error { _, err := tk.PrepareMedium(hDone, 9, 9, 0); return err },
			[]string{"128 (bad)", "neither committed nor cancelled"},
		},
	} {
		const hBad HandlerID = 128
		var inside error
		config := func(rank int) Config {
			bad := func(tk *Token, args []uint32, _ []byte) { inside = c.do(tk) }
			return Config{Debug: c.debug, Handlers: []Entry{
				{hBad, "bad", bad, AnyArgs, 0},
				{hEcho + 10, "bounce", func(tk *Token, _ []uint32, _ []byte) { tk.ReplyShort(hBad) }, AnyArgs, 0},
				{hDone, "done", nop, AnyArgs, 0},
				{hEchoed, "echoed", nop, AnyArgs, 0},
			}}
		}
		kept = nil
		errs := runJob(t, 2, config, func(e *Messenger) error {
			if e.Rank() == 0 {
				h := hBad
				if c.by == Reply {
					h = hEcho + 10
				}
				if err := e.RequestShort(1, h); err != nil {
					return err
				}
			}
			return e.Wait(nil, func() bool {
				if e.Rank() == 1 && kept != nil && !kept.active {
					inside = kept.ReplyShort(hDone)
					kept = nil
				}
				return false
			})
		})
		culprit := 1
		if c.by == Reply {
			culprit = 0
		}
		if inside == nil && !strings.Contains(c.what, "that is") {
			t.Errorf("%s: no error in the handler", c.what)
		}
		for r, err := range errs {
			var pe *PeerError
			if !errors.As(err, &pe) || pe.Rank != culprit {
				t.Errorf("%s: rank %d: %v, want a failure of rank %d", c.what, r, err, culprit)
				continue
			}
			for _, p := range c.parts {
				if !strings.Contains(err.Error(), p) {
					t.Errorf("%s: rank %d: %q does not say %q", c.what, r, err, p)
				}
			}
		}
	}
}
