package launch

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/argon-go/argon/internal/job/jobenv"
	"pgregory.net/rapid"
)

func TestFramesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []frame
		var b []byte
		for range rapid.IntRange(0, 4).Draw(t, "frames") {
			f := frame{kind: frameKind(rapid.Byte().Draw(t, "kind"))}
			f.nums = rapid.SliceOf(rapid.Int64()).Draw(t, "nums")
			f.texts = rapid.SliceOf(rapid.SliceOf(rapid.Byte())).Draw(t, "texts")
			all = append(all, f)
			b = f.append(b)
		}
		// Cut off anywhere it is not the same, and not more.
		cut := rapid.IntRange(0, len(b)).Draw(t, "cut")
		r := bufio.NewReader(bytes.NewReader(b[:cut]))
		read := 0
		for i, want := range all {
			got, err := readFrame(r)
			if read += len(want.append(nil)); read > cut {
				if err == nil {
					t.Fatalf("frame %d of %d bytes is read from %d", i, read, cut)
				}
				return
			}
			if err != nil || got.kind != want.kind || len(got.nums) != len(want.nums) || len(got.texts) != len(want.texts) {
				t.Fatalf("frame %d: %+v is read as %+v, %v", i, want, got, err)
			}
			if !bytes.Equal(got.append(nil), want.append(nil)) {
				t.Fatalf("frame %d: %+v is read as %+v", i, want, got)
			}
		}
		if _, err := readFrame(r); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last frame: %v", err)
		}
	})
}

// No bytes make the reader of frames do anything but return them or an error,
// or what both sides do with them anything but refuse.
func FuzzFrames(f *testing.F) {
	task := sampleTask()
	for _, fr := range []frame{
		{kind: frameJob, texts: [][]byte{task.encode()}},
		{kind: frameSignal, nums: []int64{15, 1, 2, 3}},
		{kind: frameEndings, nums: []int64{2, 137, 9, 1, 2, 3}, texts: [][]byte{[]byte("killed")}},
		{kind: frameOutput, nums: []int64{2, 0}, texts: [][]byte{[]byte("hello\n")}},
		{kind: frameOutEnd, nums: []int64{2, 1, 0}},
		{kind: frameCredit, nums: []int64{2, 1, 10}},
		{kind: frameSeen, nums: []int64{2, 4711, 'T', 1e9, 2e9, 3}},
		{kind: frameFail, nums: []int64{2, 1}, texts: [][]byte{[]byte("x")}},
		{kind: frameTaken, nums: []int64{-1}},
		{kind: frameStarted, nums: []int64{3, 100}, texts: [][]byte{[]byte(", processor 3")}},
	} {
		f.Add(fr.append(nil))
	}
	f.Add([]byte("o\xff\xff\xff\xff"))
	f.Add([]byte("o\x00\x00\x00\x02\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		for {
			fr, err := readFrame(r)
			if err != nil {
				return
			}
			again, err := parseFrame(fr.kind, fr.append(nil)[5:])
			if err != nil || again.kind != fr.kind || len(again.nums) != len(fr.nums) || len(again.texts) != len(fr.texts) {
				t.Fatalf("%+v does not read back: %+v, %v", fr, again, err)
			}
			tk := sampleTask()
			if tk.decode(&fr) && (tk.Size < 1 || tk.Count < 1 || tk.First < 0 || tk.First+tk.Count > tk.Size) {
				t.Fatalf("accepted %+v", tk)
			}
			hearAndObey(&fr)
		}
	})
}

// hearAndObey gives a frame to both sides of a job with ranks 2 and 3 on a host.
func hearAndObey(f *frame) {
	j := &job{eventful: make(chan struct{}, 1), memory: deafMemory{}, first: -1}
	j.Quiet = true
	j.ranks = make([]rank, 5)
	j.log = &sink{w: io.Discard}
	h := newHost(j, placement{label: "a", first: 2, size: 2})
	h.link = newLink(discard{})
	h.input = newMeter()
	j.hosts = []*host{h}
	for r := range j.ranks {
		j.ranks[r].host = h
	}
	_ = h.hear(f)
	j.happen()
	h.link.close()

	d := &deputy{link: newLink(discard{}), crew: &crew{}, input: newBacklog()}
	d.task.First, d.task.Count = 2, 2
	d.meters = [][2]*meter{{newMeter(), newMeter()}, {newMeter(), newMeter()}}
	d.obey(f)
	d.link.close()
}

type deafMemory struct{ Memory }

func (deafMemory) State(int) State                                    { return Starting }
func (deafMemory) Fail(int, int, string)                              {}
func (deafMemory) Failure() (rank, status int, cause string, ok bool) { return }

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Close() error                { return nil }

func sampleTask() task {
	return task{
		ID: "1.2.3", Host: "0.a", Conduit: "udp", Program: "p", Path: "/p", Digest: "d", Dir: "/", Iface: "lo", Key: "k",
		Args: []string{"", "\xff"}, Env: []string{"A=b"}, Servers: []string{"127.0.0.1:1", "[::1]:2"},
		Size: 4, First: 2, Count: 2, Segment: 1 << 63, Freeze: []int{0, 3}, Bind: BindCore, Shared: true, SSH: true, Large: true,
	}
}

func TestTasksReadBack(t *testing.T) {
	text := func(t *rapid.T, name string) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, name)) }
	rapid.Check(t, func(t *rapid.T) {
		var want task
		for f, v := range reflect.ValueOf(&want).Elem().Fields() {
			switch p := v.Addr().Interface().(type) {
			case *string:
				*p = text(t, f.Name)
			case *[]string:
				for range rapid.IntRange(0, 3).Draw(t, "length") {
					*p = append(*p, text(t, f.Name))
				}
			case *bool:
				*p = rapid.Bool().Draw(t, f.Name)
			}
		}
		want.Size = rapid.IntRange(1, jobenv.MaxRanks).Draw(t, "size")
		want.First = rapid.IntRange(0, want.Size-1).Draw(t, "first")
		want.Count = rapid.IntRange(1, want.Size-want.First).Draw(t, "count")
		want.Segment = rapid.Uint64().Draw(t, "segment")
		for range rapid.IntRange(0, 3).Draw(t, "frozen") {
			want.Freeze = append(want.Freeze, rapid.IntRange(0, want.Size-1).Draw(t, "rank"))
		}
		encoded := want.encode()
		f := frame{kind: frameJob, texts: [][]byte{encoded}}
		sent := f.append(nil)
		if n := len(encoded) + taskFrame; n < len(sent) {
			t.Fatalf("%d bytes are counted as %d", len(sent), n)
		}
		f, err := parseFrame(frameJob, sent[5:])
		got := sampleTask()
		if err != nil || !got.decode(&f) || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v is read as %+v, %v", want, got, err)
		}
	})
}

// A reader that is told of a long frame makes room as the bytes come.
func TestLongFrames(t *testing.T) {
	head := binary.BigEndian.AppendUint32([]byte{'o'}, maxFrame+1)
	if _, err := readFrame(bufio.NewReader(bytes.NewReader(head))); !errors.Is(err, errFrame) {
		t.Errorf("a frame of more than the most: %v", err)
	}
	head = binary.BigEndian.AppendUint32([]byte{'o'}, maxFrame)
	if n := testing.AllocsPerRun(10, func() {
		if _, err := readFrame(bufio.NewReaderSize(strings.NewReader(string(head)), 16)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("a frame cut short: %v", err)
		}
	}); n > 20 {
		t.Errorf("%v allocations", n)
	}
}

// A link delivers what was sent before it was closed, in order, to a slow
// reader, and no sender waits.
func TestLink(t *testing.T) {
	r, w := io.Pipe()
	l := newLink(w)
	const n = 1000
	var senders sync.WaitGroup
	for s := range 3 {
		senders.Go(func() {
			for i := range n {
				l.send(frameAlive, []int64{int64(s), int64(i)})
			}
		})
	}
	senders.Wait()
	l.close()
	l.send(frameAlive, []int64{9, 9})
	in := bufio.NewReader(r)
	var next [3]int64
	for range 3 * n {
		f, err := readFrame(in)
		if err != nil || next[f.nums[0]] != f.nums[1] {
			t.Fatalf("got %+v, %v, want number %v", f, err, next)
		}
		next[f.nums[0]]++
	}
	if f, err := readFrame(in); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame: %+v, %v", f, err)
	}
	<-l.done
	l.drain(0)
}

// No writer waits for a link that is broken.
func TestBrokenLink(t *testing.T) {
	r, w := io.Pipe()
	l := newLink(w)
	r.Close()
	l.send(frameInput, nil, make([]byte, 100))
	l.drain(0)
	<-l.done
	l.send(frameInput, nil, make([]byte, 100))
	l.drain(0)
}

// Credit bounds what is under way, and no writer waits for a meter that is off.
func TestMeter(t *testing.T) {
	m, b := newMeter(), newBacklog()
	under, most := 0, 0
	var mu sync.Mutex
	const parts = 1000
	go func() {
		for range parts {
			m.acquire(chunk)
			mu.Lock()
			under += chunk
			most = max(most, under)
			mu.Unlock()
			b.put(make([]byte, chunk))
		}
		b.close()
	}()
	got := 0
	for {
		p, ok := b.get()
		if !ok {
			break
		}
		got += len(p)
		mu.Lock()
		under -= len(p)
		mu.Unlock()
		m.give(len(p))
	}
	if got != parts*chunk || most > window {
		t.Errorf("%d bytes have come, at most %d under way; want %d and %d", got, most, parts*chunk, window)
	}
	for m.free >= chunk {
		m.acquire(chunk)
	}
	off := make(chan bool)
	go func() { off <- m.acquire(chunk) }()
	m.stop()
	if <-off {
		t.Error("a meter that is off gives credit")
	}
	m.give(1 << 30)
	if m.free > window {
		t.Errorf("there is credit for %d bytes", m.free)
	}
}
