package libc

import "slices"

// jump is a longjmp under way, to a place of the call of a function that frame is the number of.
// A jmp_buf is two words: frame and place.
type jump struct {
	frame        uint64
	place, value int32
}

// Catch calls body, a function of C that calls setjmp, and again for each longjmp to it: with the number of setjmp in the
// function that returns once more, and what it returns. For the first time place is 0.
func Catch(c *C, body func(frame uint64, place, value int32)) {
	c.frames++
	at := jump{frame: c.frames}
	depth := len(c.live)
	c.live = append(c.live, at.frame)
	defer func() { c.live = c.live[:depth] }()
	once := func() (again bool) {
		returned := false
		defer func() {
			if j := c.jump; !returned && j != nil && j.frame == at.frame {
				recover() // the panic of Longjmp
				at, c.jump, again = *j, nil, true
			}
		}()
		body(at.frame, at.place, at.value)
		returned = true
		return false
	}
	for once() {
	}
}

// Setjmp is setjmp (C99, 7.13.1.1), as often as the program calls it; Catch has it return again.
func Setjmp(env *uint64, place int32, frame uint64) int32 {
	*env, *At(env, 1) = frame, uint64(place)
	return 0
}

// Longjmp is longjmp (C99, 7.13.2.1).
func Longjmp(c *C, env *uint64, value int32) {
	frame, place := *env, *At(env, 1)
	if !slices.Contains(c.live, frame) {
		panic("libc: longjmp to a function that has returned, or by a jmp_buf of no setjmp")
	}
	if value == 0 {
		value = 1
	}
	c.jump = &jump{frame, int32(place), value}
	panic(c.jump)
}
