package traffic

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/argon-go/argon/internal/errs"
)

// Magic is the first line of a recording.
const Magic = "argon-traffic 1"

// maxChunk is the longest chunk that is read.
const maxChunk = 1 << 30

// maxRanks is the most ranks of a recording, as of a simulated job.
const maxRanks = 1 << 24

// Header is the beginning of a recording of a job.
func Header(ranks int, conduit, program string) []byte {
	return fmt.Appendf(nil, "%s\nranks %d conduit %s program %q\n", Magic, ranks, conduit, program)
}

// badFile is an error that names the place in a recording.
func badFile(name string, offset int64, format string, args ...any) error {
	return errs.BadArg("traffic: %s: offset %d: %s", name, offset, fmt.Sprintf(format, args...))
}

// part is some of a rank's records, and where in the file they are.
type part struct {
	b  []byte
	at int64
}

// Read reads a recording. Errors name the file as name says.
func Read(name string, from io.Reader) (*Traffic, error) {
	r := bufio.NewReaderSize(from, 1<<16)
	at := int64(0)
	line := func() (string, error) {
		var b []byte
		for len(b) < 1<<16 {
			c, err := r.ReadByte()
			if err != nil {
				if err == io.EOF {
					return string(b), badFile(name, at, "the file is cut off")
				}
				return "", fmt.Errorf("traffic: %s: %w", name, err)
			}
			at++
			if c == '\n' {
				return string(b), nil
			}
			b = append(b, c)
		}
		return string(b), badFile(name, at, "a line of more than %d bytes", len(b))
	}
	magic, err := line()
	if magic != Magic {
		if strings.HasPrefix(magic, "argon-sim-record") {
			return nil, badFile(name, 0, "line 1: %q: a record of a simulated run, which is not its traffic: -again repeats it", magic)
		}
		return nil, badFile(name, 0, "line 1: %q is not %q", errs.Printable(magic, 80), Magic)
	}
	head, err2 := line()
	if err = errors.Join(err, err2); err != nil {
		return nil, err
	}
	t := &Traffic{Name: name}
	var n int
	if k, err := fmt.Sscanf(head, "ranks %d conduit %s program %q", &n, &t.Conduit, &t.Program); err != nil || k != 3 || n < 1 || n > maxRanks {
		return nil, badFile(name, int64(len(Magic)+1), "line 2: %q is not \"ranks N conduit NAME program ...\" with 1 to %d ranks", errs.Printable(head, 200), maxRanks)
	}
	t.Conduit, t.Program = errs.Printable(t.Conduit, 80), errs.Printable(t.Program, 200)
	parts := map[int][]part{}
	for {
		var h [13]byte
		k, err := io.ReadFull(r, h[:])
		if err == io.EOF {
			break
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return nil, fmt.Errorf("traffic: %s: %w", name, err)
		}
		rank, length, sum := binary.LittleEndian.Uint32(h[1:]), binary.LittleEndian.Uint32(h[5:]), binary.LittleEndian.Uint32(h[9:])
		switch {
		case h[0] != 'C':
			return nil, badFile(name, at, "byte %#x, not %#x, which begins a chunk of records", h[0], 'C')
		case k < len(h):
			return nil, badFile(name, at, "the file is cut off in the head of a chunk")
		case int64(rank) >= int64(n):
			return nil, badFile(name, at, "records of rank %d; there are ranks 0 to %d", rank, n-1)
		case length > maxChunk:
			return nil, badFile(name, at, "a chunk of %d bytes; the most is %d", length, maxChunk)
		}
		at += int64(len(h))
		var b bytes.Buffer
		if got, err := io.CopyN(&b, r, int64(length)); err != nil {
			return nil, badFile(name, at+got, "the file is cut off in a chunk of %d bytes of rank %d", length, rank)
		}
		if crc := crc32.ChecksumIEEE(b.Bytes()); crc != sum {
			return nil, badFile(name, at, "the chunk of %d bytes of rank %d is damaged: checksum %08x, not %08x", length, rank, crc, sum)
		}
		parts[int(rank)] = append(parts[int(rank)], part{b.Bytes(), at})
		at += int64(length)
	}
	if len(parts) < n {
		for i := range n {
			if parts[i] == nil {
				return nil, badFile(name, at, "nothing of rank %d of %d: it has not left the job in good order", i, n)
			}
		}
	}
	t.Ranks = make([]Rank, n)
	d := newDecoder(t)
	for i := range n {
		if err := d.rank(i, parts[i]); err != nil {
			return nil, err
		}
	}
	if err := d.link(); err != nil {
		return nil, err
	}
	return t, nil
}
