package gas

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/sys"
)

// valueType draws a type that can travel.
func valueType(t *rapid.T, depth int) reflect.Type {
	plain := []reflect.Type{
		reflect.TypeFor[bool](), reflect.TypeFor[int8](), reflect.TypeFor[uint16](), reflect.TypeFor[float32](),
		reflect.TypeFor[uint64](), reflect.TypeFor[complex128](), reflect.TypeFor[struct{}](), reflect.TypeFor[tiny](), reflect.TypeFor[string](),
	}
	kind := 0
	if depth > 0 {
		kind = rapid.IntRange(0, 3).Draw(t, "kind")
	}
	switch kind {
	case 1:
		return reflect.SliceOf(valueType(t, depth-1))
	case 2:
		return reflect.ArrayOf(rapid.IntRange(0, 3).Draw(t, "length"), valueType(t, depth-1))
	case 3:
		var fields []reflect.StructField
		for i := range rapid.IntRange(0, 4).Draw(t, "fields") {
			fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: valueType(t, depth-1)})
		}
		return reflect.StructOf(fields)
	}
	return rapid.SampledFrom(plain).Draw(t, "plain")
}

// fill gives v a value. Padding stays zero.
func fill(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[tiny]() {
			v.Set(reflect.ValueOf(tiny{a: rapid.Byte().Draw(t, "a"), b: rapid.Uint16().Draw(t, "b")}))
			return
		}
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Slice:
		if rapid.Bool().Draw(t, "nil") {
			return
		}
		if e := v.Type().Elem(); (e.Kind() == reflect.Uint16 || e.Kind() == reflect.Uint64) && rapid.IntRange(0, 3).Draw(t, "large") == 0 {
			v.Set(reflect.MakeSlice(v.Type(), leastApart/int(e.Size())+rapid.IntRange(-1, 1).Draw(t, "more"), leastApart))
			v.Index(v.Len() - 1).SetUint(7)
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(0, 4).Draw(t, "len"), 7))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "string"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int8:
		v.SetInt(int64(rapid.Int8().Draw(t, "int")))
	case reflect.Uint16, reflect.Uint64:
		v.SetUint(uint64(rapid.Uint16().Draw(t, "uint")))
	case reflect.Float32:
		v.SetFloat(float64(rapid.Int16().Draw(t, "float")))
	case reflect.Complex128:
		v.SetComplex(complex(float64(rapid.Int16().Draw(t, "re")), 1))
	}
}

// TestValuesTravel: values of random types are the same after a way through bytes, share no
// memory with them, and no part of the bytes is a value.
func TestValuesTravel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := valueType(t, 3)
		c, err := travelling(typ)
		if err != nil {
			t.Fatal(err)
		}
		v, got := reflect.New(typ), reflect.New(typ)
		fill(t, v.Elem())
		most := rapid.SampledFrom([]int{512, 4096, 1 << 20}).Draw(t, "most")
		b := c.encoded(v.UnsafePointer(), most)
		if len(b.stream)+len(b.apart)*partBytes > most || len(b.apart) > mostApart+1 {
			t.Fatalf("a stream of %d bytes and %d parts do not fit into %d", len(b.stream), len(b.apart), most)
		}
		// It moves to other memory.
		moved := parcel{stream: slices.Clone(b.stream)}
		for _, part := range b.apart {
			moved.apart = append(moved.apart, slices.Clone(part))
		}
		at, parts := &moved.stream, len(b.apart)
		if *at == nil && parts > 0 {
			at = &moved.apart[0]
			parts--
		}
		stream, whole := *at, len(c.append(nil, v.UnsafePointer(), nil))
		if parts > 0 {
			whole = len(c.append(nil, v.UnsafePointer(), &parcel{}))
		}
		taken := func(s []byte) bool {
			*at = s
			err := c.decoded(moved, reflect.New(typ).UnsafePointer())
			*at = stream
			return err == nil
		}
		for k := range whole {
			if taken(stream[:k:k]) {
				t.Fatalf("%d of %d bytes are a %v", k, whole, typ)
			}
		}
		if taken(slices.Concat(stream, make([]byte, 4))) {
			t.Fatalf("bytes behind a %v are taken", typ)
		}
		for i := range parts {
			less := moved
			k := len(less.apart) - 1 - i
			less.apart = slices.Delete(slices.Clone(less.apart), k, k+1)
			if err := c.decoded(less, reflect.New(typ).UnsafePointer()); err == nil {
				t.Fatalf("a %v without a part is taken", typ)
			}
			less.apart = slices.Insert(less.apart, k, moved.apart[k][1:])
			if err := c.decoded(less, reflect.New(typ).UnsafePointer()); err == nil {
				t.Fatalf("a %v with a short part is taken", typ)
			}
		}
		if err := c.decoded(moved, got.UnsafePointer()); err != nil {
			t.Fatal(err)
		}
		for i := range stream {
			stream[i] ^= 0xff
		}
		if !reflect.DeepEqual(v.Elem().Interface(), got.Elem().Interface()) {
			t.Fatalf("%v became %v", v.Elem(), got.Elem())
		}
	})
}

// fuzzed has all forms of values.
type fuzzed struct {
	Name  string
	Small []tiny
	Deep  [2][]struct {
		None  []struct{}
		Words [][]uint32
	}
}

// FuzzCallValue decodes any bytes: what is taken is the same after a way through bytes.
func FuzzCallValue(f *testing.F) {
	c, err := travelling(reflect.TypeFor[fuzzed]())
	if err != nil {
		f.Fatal(err)
	}
	seed := fuzzed{Name: "seed", Small: []tiny{{1, 2}}}
	seed.Deep[1] = append(seed.Deep[1], struct {
		None  []struct{}
		Words [][]uint32
	}{make([]struct{}, 3), [][]uint32{nil, {1, 2, 3}}})
	f.Add(c.append(nil, unsafe.Pointer(&seed), nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var v fuzzed
		rest, err := c.decode(b, unsafe.Pointer(&v), &parcel{apart: [][]byte{make([]byte, 24)}})
		if err != nil {
			return
		}
		if bytes.Contains(b[:len(b)-len(rest)], binary.LittleEndian.AppendUint64(nil, apart|24)[1:]) {
			return // with the part
		}
		if again := c.append(nil, unsafe.Pointer(&v), nil); string(again) != string(b[:len(b)-len(rest)]) {
			t.Fatalf("%x became %x", b, again)
		}
	})
}

// letter is a value of any length.
type letter struct {
	To    string
	Lines []string
	Marks []uint16
}

func (l letter) equal(m letter) bool {
	return l.To == m.To && slices.Equal(l.Lines, m.Lines) && slices.Equal(l.Marks, m.Marks)
}

// letterOf makes a letter of about so many bytes.
func letterOf(seed, size int) letter {
	l := letter{To: fmt.Sprint("rank ", seed), Marks: make([]uint16, size/4)}
	for i := range l.Marks {
		l.Marks[i] = uint16(i*seed + size)
	}
	for k := size / 2; k > 0; k -= 100 {
		l.Lines = append(l.Lines, strings.Repeat(string(rune('a'+seed%26)), min(k, 100)))
	}
	return l
}

func (l letter) answer() letter {
	l.To += "!"
	slices.Reverse(l.Marks) // they are the called function's
	return l
}

var (
	callLetter = RegisterCall("test.letter", func(n *Node, l letter) letter { return l.answer() })
	callCaller = RegisterFunc("test.caller", func(c *Call, text string) (int, error) {
		if text != "" {
			return 7, fmt.Errorf("rank %d: %s: %w", c.Rank(), text, errors.Join(ErrNotReady, ErrFault))
		}
		return c.Caller(), nil
	})
	callMany = RegisterCall("test.many", func(n *Node, _ [4000]byte) [3000]byte { return [3000]byte{2999: 7} })
)

// exchangeLetters has every rank call every rank, with letters of all sizes.
func exchangeLetters(n *Node) error {
	for i, size := range []int{0, 5, 40, 300, 511, 513, 3000, 70000, 1 << 20} {
		l := letterOf(n.Rank()+i, size)
		sent := letterOf(n.Rank()+i, size)
		var fs []Future[letter]
		for r := range n.Size() {
			f, err := callLetter.Go(n, r, l)
			if err != nil {
				return err
			}
			fs = append(fs, f)
		}
		if !l.equal(sent) {
			return errors.New("a call has changed its argument")
		}
		for r, f := range fs {
			got, err := f.Wait()
			if err != nil || !got.equal(letterOf(n.Rank()+i, size).answer()) {
				return fmt.Errorf("a letter of %d bytes to rank %d became another (%v)", size, r, err)
			}
		}
	}
	for r := range n.Size() {
		if v, err := callCaller.Call(n, r, ""); err != nil || v != n.Rank() {
			return fmt.Errorf("rank %d was called by %d (%v)", r, v, err)
		}
		if v, err := callMany.Call(n, r, [4000]byte{}); err != nil || v != [3000]byte{2999: 7} {
			return fmt.Errorf("a large result of fixed size: %v", err)
		}
		for _, text := range []string{"no", strings.Repeat("long", 40000)} {
			v, err := callCaller.Call(n, r, text)
			var ce *CallError
			if v != 0 || !errors.As(err, &ce) || ce.Rank != r || ce.Panic || !strings.Contains(ce.Text, text) {
				return fmt.Errorf("%d, %w", v, err)
			}
			if !errors.Is(err, ErrNotReady) || !errors.Is(err, ErrFault) || !errors.Is(err, ErrBadArg) || errors.Is(err, ErrPeer) {
				return fmt.Errorf("the error matches others: %w", err)
			}
		}
	}
	return n.Barrier()
}

func TestCallsOfAnyLength(t *testing.T) {
	runN(t, 3, exchangeLetters)
}

// Goroutines in lanes exchange letters, each of which gets its own.
func TestLettersInLanes(t *testing.T) {
	cfg := small(2)
	cfg.Lanes = 3
	if err := Run(cfg, func(n *Node) error {
		errc := make(chan error)
		for k := range 2 {
			go func() {
				l, err := n.Lane()
				for i := 0; i < 20 && err == nil; i++ {
					var got letter
					if got, err = callLetter.Call(l, i%2, letterOf(k, i*100)); err == nil && !got.equal(letterOf(k, i*100).answer()) {
						err = fmt.Errorf("goroutine %d got another letter", k)
					}
				}
				errc <- err
			}()
		}
		err := errors.Join(<-errc, <-errc)
		return errors.Join(err, n.Barrier())
	}); err != nil {
		t.Error(err)
	}
}

// TestRoomIsLeft: the room of an argument that could not be put is given back.
func TestRoomIsLeft(t *testing.T) {
	everywhere(t, small(2), func(n *Node) error {
		a, l := &asked{f: callLetter.function, dst: 1 - n.Rank(), parts: 1}, n.big()
		l.mu.Lock()
		l.asked[7] = a
		l.mu.Unlock()
		n.Must(n.e.RequestMedium(a.dst, handlerAsk, bytesOf([]uint64{leastApart}), 7, 0))
		if err := n.Wait(a.came.Load); err != nil || a.refused != "" {
			return fmt.Errorf("room was refused: %s, %w", a.refused, err)
		}
		n.Must(n.Barrier()) // both have made room
		n.Must(n.e.RequestShort(a.dst, handlerRun, unrun, 0, 0, 7))
		n.Must(n.Wait(func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.rooms)+len(l.given) == 0 && n.promised.bytes.Load() == 0
		}))
		return n.Barrier()
	})
}

// TestInventedSize: a length that no memory has is refused, without memory for it.
func TestInventedSize(t *testing.T) {
	const invented = 1 << 50
	var p promised
	if err := p.add(0, invented); !errors.Is(err, ErrResource) {
		t.Errorf("%d bytes: %v", invented, err)
	}
	if err := p.add(unasked, 1<<20); err != nil {
		t.Errorf("1 MiB where %d bytes are on their way: %v", unasked, err)
	}
	free := uint64(sys.MemoryRoom(true).Free) // which others use, too
	if err := p.add(0, free/3); err != nil {
		t.Errorf("a third of the memory that there is: %v", err)
	}
	if err := p.add(0, 2*free); !errors.Is(err, ErrResource) {
		t.Errorf("twice the memory that there is: %v", err)
	}
	if p.sub(free/3 + 1<<20); p.bytes.Load() != 0 {
		t.Errorf("%d bytes remain promised", p.bytes.Load())
	}
	runN(t, 2, func(n *Node) error {
		a := &asked{f: callLetter.function, dst: 1 - n.Rank(), parts: 2}
		l := n.big()
		l.mu.Lock()
		l.asked[7] = a
		l.mu.Unlock()
		n.Must(n.e.RequestMedium(a.dst, handlerAsk, bytesOf([]uint64{8, invented}), 7, 0))
		if err := n.Wait(a.came.Load); err != nil || a.refused == "" {
			return fmt.Errorf("room for an argument of %d bytes: %w", uint64(invented), err)
		}
		n.Must(n.Barrier())
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.rooms) != 0 || len(l.given) != 0 || n.promised.bytes.Load() != 0 {
			return fmt.Errorf("what is left of it: %d rooms, %d ranks that have some, %d bytes", len(l.rooms), len(l.given), n.promised.bytes.Load())
		}
		return nil
	})
}

// panicText is what fn panics with, or "".
func panicText(fn func()) (text string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprint(p)
		}
	}()
	fn()
	return ""
}

// TestPieces: each piece of a room comes once, from the room's peer and as cut makes it.
func TestPieces(t *testing.T) {
	const most = 4096
	from := [][]byte{bytes.Repeat([]byte{1}, 2*most+5), bytes.Repeat([]byte{2}, most), bytes.Repeat([]byte{3}, 7)}
	parts := [][]byte{make([]byte, len(from[0])), make([]byte, len(from[1])), make([]byte, len(from[2]))}
	r := newRoom(1, parts)
	r.expect(most)
	bad := func(src int, part uint32, off uint64, n int) {
		t.Helper()
		before := r.left.Load()
		if text := panicText(func() { r.fill(src, part, off, make([]byte, n), most) }); !strings.Contains(text, "malformed piece from rank") || r.left.Load() != before {
			t.Errorf("%d bytes of rank %d at %d of part %d: %q, and %d of %d bytes are missing", n, src, off, part, text, r.left.Load(), before)
		}
	}
	bad(2, 0, 0, most)
	bad(1, 3, 0, most)
	bad(1, 0, 1, most)
	bad(1, 0, 0, most-1)
	bad(1, 0, 0, 0)
	bad(1, 0, 2*most, 6)
	if err := cut(most, from, func(part uint32, off, n uint64) error {
		r.fill(1, part, off, from[part][off:off+n], most)
		bad(1, part, off, int(n))
		return nil
	}); err != nil || r.left.Load() != 0 || !slices.EqualFunc(parts, from, bytes.Equal) {
		t.Errorf("%d bytes are missing when all pieces have come (%v)", r.left.Load(), err)
	}
}

var callMarks = RegisterCall("test.marks", func(n *Node, b []byte) int { return len(b) - bytes.Count(b, []byte{0}) })

// TestRoomIsCleared: a function whose caller has not put its argument sees nothing of what
// the called rank had in its heap.
func TestRoomIsCleared(t *testing.T) {
	const size = 1 << 20
	everywhere(t, small(2), func(n *Node) error {
		for range 8 { // what the room is likely to be made of
			bulk.Clone(bytes.Repeat([]byte{0xA5}, size))
		}
		runtime.GC()
		n.Must(n.Barrier())
		f, arg, l := callMarks.function, make([]byte, size), n.big()
		v := f.arg.encoded(unsafe.Pointer(&arg), n.e.MaxMedium())
		a := &asked{f: f, dst: 1 - n.Rank(), parts: len(v.apart)}
		l.mu.Lock()
		l.asked[7] = a
		l.mu.Unlock()
		n.Must(n.e.RequestMedium(a.dst, handlerAsk, bytesOf([]uint64{size}), 7, 0))
		if err := n.Wait(a.came.Load); err != nil || a.refused != "" {
			return fmt.Errorf("room was refused: %s, %w", a.refused, err)
		}
		s, i := n.calls.claim(f, a.dst)
		n.Must(n.e.RequestMedium(a.dst, handlerRun, v.stream, f.index, i, s.use(), 7))
		if seen, err := (Future[int]{n: n, s: s, i: i, use: s.use()}).Wait(); err != nil || seen != 0 {
			return fmt.Errorf("the function saw %d bytes of others (%v)", seen, err)
		}
		return n.Barrier()
	})
}

var callRooms = RegisterCall("test.rooms", func(n *Node, _ struct{}) int {
	l := n.big()
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.rooms) + len(l.given) + int(n.promised.bytes.Load())
})

// TestUnsentValues: where the message that a value goes with cannot be sent, neither its room nor its
// registration remains.
func TestUnsentValues(t *testing.T) {
	everywhere(t, small(2), func(n *Node) error {
		l, dst := n.big(), 1-n.Rank()
		v := parcel{stream: make([]byte, n.e.MaxMedium()+1), apart: [][]byte{make([]byte, leastApart)}}
		if l.answer(nil, requester{rank: dst, slot: noSlot}, 0, v); len(l.held) != 0 {
			return fmt.Errorf("%d results remain", len(l.held))
		}
		if err := n.sendEncoded(callLetter.function, dst, &v, noSlot, 0, noResult); !errors.Is(err, ErrBadArg) {
			return fmt.Errorf("a stream of %d bytes in a message: %w", len(v.stream), err)
		}
		for range 100 { // the word that the room is not needed may be under way for a while
			if rooms, err := callRooms.Call(n, dst, struct{}{}); err != nil || rooms == 0 {
				return errors.Join(err, n.Barrier())
			}
		}
		return fmt.Errorf("rank %d has room for what was not sent", dst)
	})
}

// TestForeignAnswers: a rank neither gets nor ends what is for another one, and answers nothing that
// another one was asked.
func TestForeignAnswers(t *testing.T) {
	n := &Node{calls: new(calls)}
	s, i := n.calls.claim(benchCall.function, 1)
	if n.returned(2, []uint32{i, s.use(), 1, 0}, nil); s.ready() {
		t.Error("rank 2 has answered a call of rank 1")
	}
	if n.take(2, i, s.use(), 0, parcel{}, nil); s.ready() {
		t.Error("rank 2 has answered a call of rank 1 by a large result")
	}
	if n.returned(1, []uint32{i, s.use(), 1, 0}, nil); !s.ready() {
		t.Error("rank 1 has not answered")
	}
	for name, words := range map[string][pullWords]uint32{
		"a piece": {7, 9, 0, 0, 0, 100},
		"taken":   {7},
	} {
		var awaits atomic.Bool // rank 0 handles messages where it takes the panic
		err := Run(small(3), func(n *Node) error {
			if n.Rank() == 0 {
				r := newRoom(1, [][]byte{make([]byte, 100)})
				n.big().held[7] = r
			}
			n.Must(n.Barrier())
			if n.Rank() == 0 {
				awaits.Store(true)
			}
			if n.Rank() == 2 {
				for !awaits.Load() {
					runtime.Gosched()
				}
				n.Must(n.e.RequestShort(0, handlerPull, words[:]...))
			}
			text, err := "", error(nil)
			if text = panicText(func() { err = n.Wait(func() bool { return n.big().held[7] == nil && n.Rank() == 0 }) }); strings.Contains(text, "malformed piece from rank 2") && n.big().held[7] != nil {
				return errTest
			}
			return fmt.Errorf("it was let go: %q, %w", text, err)
		})
		if !errors.Is(err, errTest) {
			t.Errorf("a pull of %s by a rank that the result is not for: %v", name, err)
		}
	}
}

// TestValuesCollected: what a parcel alone refers to is not freed, whenever the collector runs.
func TestValuesCollected(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	f, err := travelling(reflect.TypeFor[[]byte]())
	if err != nil {
		t.Fatal(err)
	}
	size := leastApart + len(t.Name()) // not known to the compiler, so that it is in the heap
	var last [64]parcel
	for i := range 5000 {
		arg := make([]byte, size)
		arg[0], arg[size-1] = byte(i), byte(i)
		v := &last[i%len(last)]
		if i >= len(last) {
			if b, want := v.apart[0], byte(i-len(last)); b[0] != want || b[size-1] != want {
				t.Fatalf("parcel %d of %d: ends with %d and %d, which others have put there", i-len(last), i, b[0], b[size-1])
			}
		}
		*v = f.encoded(unsafe.Pointer(&arg), leastApart)
	}
}
