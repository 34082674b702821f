//go:build ofi && cgo

package main

/*
#cgo LDFLAGS: -lfabric
#include "bare.h"
*/
import "C"

import (
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"github.com/argon-go/argon/conduits/ofi/providers"
	"github.com/argon-go/argon/internal/job/guest"
	"github.com/argon-go/argon/internal/sys"
)

// bareBuilt reports whether there are references of bare libfabric.
const bareBuilt = true

// bare is one endpoint of libfabric, used by C alone: Go only starts bursts.
type bare struct {
	provider string
	c        *C.struct_bare
	left     *C.uint64_t // operations that are left, in C memory
}

// openBare opens the calling rank's endpoint, of the provider that the conduit would
// choose, and returns its address as the other rank needs it.
func (j *job) openBare() (text string, err error) {
	w, err := providers.FromEnv(os.Getenv)
	if err != nil {
		return "", err
	}
	list, err := providers.List()
	if err != nil {
		return "", err
	}
	best, err := providers.Best(providers.Choose(list, w), w)
	if err != nil {
		return "", err
	}
	b := &bare{
		provider: best.Name,
		c:        (*C.struct_bare)(C.calloc(1, C.sizeof_struct_bare)),
		left:     (*C.uint64_t)(C.calloc(1, C.sizeof_uint64_t)),
	}
	j.bare = b
	var names [3]*C.char
	for i, s := range []string{best.Name, best.Domain, best.Address} {
		names[i] = C.CString(s)
		defer C.free(unsafe.Pointer(names[i]))
	}
	var rc C.int
	guest.Call("gasbench: opening "+best.Name, func() { rc = C.bare_open(b.c, names[0], names[1], names[2], dataSize) })
	if rc != 0 {
		return "", b.err()
	}
	var name [256]byte
	n := C.bare_name(b.c, unsafe.Pointer(&name), C.size_t(len(name)))
	if n < 0 {
		return "", b.err()
	}
	return fmt.Sprintf("%s %d %d", hex.EncodeToString(name[:n]), C.bare_base(b.c), C.bare_key(b.c)), nil
}

// connectBare tells the endpoint of the other rank's, whose address is text.
func (j *job) connectBare(text string) error {
	var address string
	var base, key uint64
	if _, err := fmt.Sscanf(text, "%s %d %d", &address, &base, &key); err != nil {
		return fmt.Errorf("the other rank's address %q: %w", text, err)
	}
	raw, err := hex.DecodeString(address)
	if err != nil {
		return err
	}
	if C.bare_connect(j.bare.c, unsafe.Pointer(unsafe.SliceData(raw)), C.uint64_t(base), C.uint64_t(key)) != 0 {
		return j.bare.err()
	}
	return nil
}

// err returns the error that C noted.
func (b *bare) err() error {
	return fmt.Errorf("libfabric, provider %s: %s", b.provider, C.GoString(&b.c.text[0]))
}

func (b *bare) close() {
	C.bare_close(b.c)
	C.free(unsafe.Pointer(b.left))
}

// until calls step until it says 1. Between calls, which come when nothing has happened
// for some 100 us, the job's own messages are looked after.
func (j *job) until(step func() C.int) error {
	var begun time.Time
	for {
		switch step() {
		case 1:
			return nil
		case -1:
			return j.bare.err()
		}
		runtime.Gosched()
		sys.Yield()
		j.e.Poll()
		if err := j.n.Layers().Conduit.Err(); err != nil {
			return err
		}
		if now := time.Now(); begun.IsZero() {
			begun = now
		} else if now.Sub(begun) > lostAfter+time.Minute {
			return fmt.Errorf("libfabric, provider %s: a burst has not ended for %v", j.bare.provider, now.Sub(begun))
		}
	}
}

// bareRun does count operations of size bytes on rank 0.
func (j *job) bareRun(what uint32, count, size int) error {
	c, left := j.bare.c, j.bare.left
	*left = C.uint64_t(count)
	switch n := C.size_t(size); what {
	case cmdBarePings:
		return j.until(func() C.int { return C.bare_ping(c, left, n) })
	case cmdBareWrites:
		return j.until(func() C.int { return C.bare_write(c, left, n) })
	}
	return j.until(func() C.int { return C.bare_pour(c, left, C.size_t(size)) })
}

// bareDone ends the writes, for which rank 1 waits.
func (j *job) bareDone() error {
	if C.bare_send(j.bare.c, 0, 8) != 0 {
		return j.bare.err()
	}
	return nil
}

// bareAnswer is rank 1's side of count operations.
func (j *job) bareAnswer(what uint32, count uint64, size int) error {
	c, left := j.bare.c, j.bare.left
	*left = C.uint64_t(count)
	switch what {
	case cmdBarePings:
		return j.until(func() C.int { return C.bare_pong(c, left, C.size_t(size)) })
	case cmdBareWrites:
		return j.until(func() C.int { return C.bare_serve(c) })
	}
	return j.until(func() C.int { return C.bare_catch(c, left) })
}
