// The state of a thread. What is unsafe here: struct timeval at the place that the program names,
// and the end of the stack.

package libc

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/sys/origin"
)

// C is the library's state of one thread.
type C struct {
	stack  stack
	out    []byte
	seed   uint64
	rand48 uint64 // the state of drand48
	tok    *int8  // where strtok goes on
	now    func() time.Duration
	Err    Errno
	anew   [3]*File // of the standard streams those that freopen has opened

	messages map[string]*int8 // of strerror
	opts     *options
	environ  **int8
	calendar unsafe.Pointer // what gmtime gives, and then asctime
	atexit   []func()
	frames   uint64                    // calls of functions with setjmp so far
	live     []uint64                  // of which these have not returned
	jump     *jump                     // of longjmp, if it is under way
	handlers *conc.Map[int32, handler] // which signals read that are handled beside the thread
}

// New is a thread's library. now is the clock of the thread's job, which may be a simulated
// one.
func New(now func() time.Duration) C {
	p := mapMemory(stackSize)
	return C{stack: stack{base: p, end: unsafe.Add(p, stackSize), top: p}, seed: 1, now: now, handlers: conc.NewMap[int32, handler]()}
}

// exit is the value that function exit panics with.
type exit struct {
	status  int32
	aborted bool
}

// Exit is exit: it ends the thread's main.
func (c *C) Exit(status int32) {
	leave(c)
	panic(exit{status: status})
}

// Abort is abort (C99, 7.20.4.1).
func (c *C) Abort() {
	c.Flush()
	if h, _ := c.handlers.Load(6); h.fn != nil && uintptr(h.raw) != 1 {
		h.fn(6)
	}
	fmt.Fprintln(os.Stderr, "aborted")
	panic(exit{134, true})
}

// AssertFail ends the thread for a failed assert.
func (c *C) AssertFail(what, file *int8, line int32, fn *int8) {
	c.Flush()
	fmt.Fprintf(os.Stderr, "%s:%d: %s: Assertion `%s' failed.\n", text(file), line, text(fn), text(what))
	panic(exit{134, true})
}

// Run calls main and returns its result, or the argument of exit. aborted: abort, or an
// assertion, has ended it, and the other threads are not to go on.
// A run-time panic of Go, such as an access through a null pointer, gets the line of the program.
func (c *C) Run(main func() int32) (status int32, aborted bool) {
	defer c.Finish()
	defer func() {
		switch e := recover().(type) {
		case nil:
		case exit:
			status, aborted = e.status, e.aborted
		case runtime.Error:
			number := int32(11)
			if strings.Contains(e.Error(), "divide") {
				number = 8
			}
			if h, _ := c.handlers.Load(number); h.fn != nil && uintptr(h.raw) != 1 {
				status, aborted = 128+number, true
				interrupted(c, number, "when the functions of its thread have ended")
				return
			}
			panic(fmt.Errorf("%s: %w", origin.Caller(), e))
		case string: // this package's
			panic(origin.Caller() + ": " + e)
		default:
			panic(e)
		}
	}()
	status = main()
	leave(c)
	return status, false
}

// leave calls what atexit has been given.
func leave(c *C) {
	for n := len(c.atexit); n > 0; n = len(c.atexit) {
		f := c.atexit[n-1]
		c.atexit = c.atexit[:n-1]
		f()
	}
}

// Errno is errno (C99, 7.5).
type Errno int32

// Set keeps what an error is as a number: EIO of one that the system does not know.
func (e *Errno) Set(err error) {
	n := syscall.EIO
	errors.As(err, &n)
	*e = Errno(n)
}

// Off is a result of functions that return -1 and set errno where they fail.
func (e *Errno) Off(n int64, err error) int64 {
	if err != nil {
		e.Set(err)
		return -1
	}
	return n
}

// Status is Off of functions that have no other result.
func (e *Errno) Status(err error) int32 { return int32(e.Off(0, err)) }

// Word is a result of functions that return 0 and set errno where they fail.
func (e *Errno) Word(w uint64, err error) uint64 {
	if err != nil {
		e.Set(err)
		return 0
	}
	return w
}

// Rand is rand: a linear congruential generator of 64 bits, whose upper bits are given.
func (c *C) Rand() int32 {
	c.seed = c.seed*6364136223846793005 + 1442695040888963407
	return int32(c.seed >> 33)
}

// Srand is srand (C99, 7.20.2.2).
func (c *C) Srand(seed uint32) { c.seed = uint64(seed) }

// next48 is the next number of drand48 and its kin, of 48 bits, as POSIX has it.
func (c *C) next48() uint64 {
	c.rand48 = (c.rand48*0x5deece66d + 0xb) & (1<<48 - 1)
	return c.rand48
}

// Drand48 is drand48 (POSIX).
func (c *C) Drand48() float64 { return float64(c.next48()) / (1 << 48) }

// Lrand48 is lrand48 (POSIX).
func (c *C) Lrand48() int64 { return int64(c.next48() >> 17) }

// Srand48 is srand48 (POSIX).
func (c *C) Srand48(seed int64) { c.rand48 = uint64(uint32(seed))<<16 | 0x330e }

// Abs is abs (C99, 7.20.6.1).
func Abs(v int32) int32 { return max(v, -v) }

// Labs is labs (C99, 7.20.6.1).
func Labs(v int64) int64 { return max(v, -v) }

// Llabs is llabs (C99, 7.20.6.1).
func Llabs(v int64) int64 { return max(v, -v) }

// Ldexp is ldexp (C99, 7.12.6.6).
func Ldexp(f float64, n int32) float64 { return math.Ldexp(f, int(n)) }

// Scalbn is scalbn (C99, 7.12.6.13).
func Scalbn(f float64, n int32) float64 { return math.Ldexp(f, int(n)) }

// Frexp is frexp (C99, 7.12.6.4).
func Frexp(f float64, n *int32) float64 {
	f, e := math.Frexp(f)
	*n = int32(e)
	return f
}

// Modf is modf (C99, 7.12.6.12).
func Modf(f float64, whole *float64) float64 {
	*whole = math.Trunc(f)
	if math.IsInf(f, 0) {
		return math.Copysign(0, f)
	}
	return math.Copysign(f-*whole, f)
}

// Ilogb is ilogb (C99, 7.12.6.5).
func Ilogb(f float64) int32 { return int32(max(math.Ilogb(f), math.MinInt32)) }

// Lround is lround (C99, 7.12.9.7).
func Lround(f float64) int64 { return int64(math.Round(f)) }

// Llround is llround (C99, 7.12.9.7).
func Llround(f float64) int64 { return int64(math.Round(f)) }

// Lrint is lrint (C99, 7.12.9.5).
func Lrint(f float64) int64 { return int64(math.RoundToEven(f)) }

// Llrint is llrint (C99, 7.12.9.5).
func Llrint(f float64) int64 { return int64(math.RoundToEven(f)) }

// Lgamma is lgamma (C99, 7.12.8.3).
func Lgamma(f float64) float64 {
	v, _ := math.Lgamma(f)
	return v
}

// Time is time: seconds of the job's clock, not of the calendar.
func (c *C) Time(p *int64) int64 {
	s := int64(c.now() / time.Second)
	if p != nil {
		*p = s
	}
	return s
}

// Clock is clock: microseconds of the job's clock.
func (c *C) Clock() int64 { return c.now().Microseconds() }

// Timeval is struct timeval.
type Timeval struct{ Sec, Usec int64 }

// Gettimeofday is gettimeofday, on the job's clock.
func (c *C) Gettimeofday(p, zone unsafe.Pointer) int32 {
	us := c.now().Microseconds()
	*(*Timeval)(p) = Timeval{us / 1e6, us % 1e6}
	return 0
}

// Getenv is getenv (C99, 7.20.4.5).
func (c *C) Getenv(name *int8) *int8 {
	v, ok := os.LookupEnv(string(text(name)))
	if !ok {
		return nil
	}
	return Str(v + "\x00")
}

// Float is a constant that Go cannot write: an infinity or no number.
func Float(f float64) float64 { return f }

// Round is round: away from zero in the middle.
func Round(f float64) float64 { return math.Round(f) }

// Fmax is fmax: of a number and none it is the number, which Go's math.Max is not.
func Fmax(x, y float64) float64 {
	switch {
	case math.IsNaN(x):
		return y
	case math.IsNaN(y):
		return x
	}
	return max(x, y)
}

// Fdim is fdim: 0 of two infinities that are the same, which Go's math.Dim is not.
func Fdim(x, y float64) float64 {
	if x == y {
		return 0
	}
	return math.Dim(x, y)
}

// Fmin is fmin, of a number and none as Fmax.
func Fmin(x, y float64) float64 {
	switch {
	case math.IsNaN(x):
		return y
	case math.IsNaN(y):
		return x
	}
	return min(x, y)
}
