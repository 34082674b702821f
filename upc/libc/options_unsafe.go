// Options of the command line. What is unsafe here: the program's argument vector, and struct option.

package libc

import (
	"fmt"
	"strings"
	"unsafe"
)

// options are the variables of getopt, which the program reads and writes.
type options struct {
	arg           *int8
	ind, err, opt int32
	next          int // in the argument that several options stand in
	first         int // of the arguments that are none and have been moved behind
}

func optionState(c *C) *options {
	if c.opts == nil {
		c.opts = Static[options]()
		c.opts.ind, c.opts.err, c.opts.opt = 1, 1, '?'
	}
	return c.opts
}

// Optarg, Optind, Opterr and Optopt are the variables of <unistd.h>.
func Optarg(c *C) **int8 { return &optionState(c).arg }

// Optind is the index of the next argument.
func Optind(c *C) *int32 { return &optionState(c).ind }

// Opterr is 0 if nothing is to be printed of options that there are not.
func Opterr(c *C) *int32 { return &optionState(c).err }

// Optopt is the option that there is not.
func Optopt(c *C) *int32 { return &optionState(c).opt }

// longOption is struct option of <getopt.h>.
type longOption struct {
	name   *int8
	hasArg int32
	flag   *int32
	val    int32
}

// Getopt is getopt, and with long options getopt_long, as the GNU library has them: arguments that are no options are
// moved behind those that are, unless the options begin with + or POSIXLY_CORRECT is set.
func Getopt(c *C, argc int32, argv **int8, short *int8, longs unsafe.Pointer, which *int32) int32 {
	o := optionState(c)
	args := unsafe.Slice(argv, argc)
	list := string(text(short))
	stays := strings.HasPrefix(list, "+")
	list = strings.TrimPrefix(list, "+")
	quiet := strings.HasPrefix(list, ":")
	o.arg = nil
	if o.ind == 0 {
		o.ind, o.next = 1, 0
	}
	say := func(format string, a ...any) {
		if o.err != 0 && !quiet {
			c.writeTo(c.Stderr(), fmt.Appendf(nil, "%s: "+format+"\n", append([]any{text(args[0])}, a...)...))
		}
	}
	if o.next == 0 {
		is := func(i int32) bool { s := text(args[i]); return len(s) > 1 && s[0] == '-' }
		k := o.ind
		for k < argc && !is(k) && !stays {
			k++
		}
		if k >= argc || !is(k) {
			return -1
		}
		// What is no option moves behind the option, and behind what the option takes, when that is read.
		o.first = int(k - o.ind)
		o.ind = k
	}
	code, used := option(o, args, list, quiet, longs, which, say)
	if o.next == 0 && o.first > 0 {
		at := int(o.ind) - used
		moved := append([]*int8(nil), args[at-o.first:at]...)
		copy(args[at-o.first:], args[at:o.ind])
		copy(args[int(o.ind)-o.first:], moved)
		o.ind -= int32(o.first)
	}
	if code == endOfOptions {
		return -1
	}
	return code
}

const endOfOptions = -2 // the argument --

// option reads the option at optind, and is how many arguments it has taken when it is the last one in its argument.
func option(o *options, args []*int8, list string, quiet bool, longs unsafe.Pointer, which *int32, say func(string, ...any)) (code int32, used int) {
	arg := text(args[o.ind])
	if o.next == 0 && string(arg) == "--" {
		o.ind++
		return endOfOptions, 1
	}
	missing := func() int32 {
		if quiet {
			return ':'
		}
		return '?'
	}
	if o.next == 0 && longs != nil && len(arg) > 2 && arg[1] == '-' {
		o.ind++
		name, value, has := strings.Cut(string(arg[2:]), "=")
		l, index := find1(longs, name)
		switch {
		case l == nil:
			o.opt = 0
			say("unrecognized option '--%s'", name)
			return '?', 1
		case has && l.hasArg == 0:
			o.opt = l.val
			say("option '--%s' doesn't allow an argument", text(l.name))
			return '?', 1
		case has:
			o.arg = At(args[o.ind-1], len(arg)-len(value))
			used = 1
		case l.hasArg == 1 && int(o.ind) >= len(args):
			o.opt = l.val
			say("option '--%s' requires an argument", text(l.name))
			return missing(), 1
		case l.hasArg == 1:
			o.arg = args[o.ind]
			o.ind++
			used = 2
		default:
			used = 1
		}
		if which != nil {
			*which = int32(index)
		}
		if l.flag != nil {
			*l.flag = l.val
			return 0, used
		}
		return l.val, used
	}
	if o.next == 0 {
		o.next = 1
	}
	ch := arg[o.next]
	o.next++
	ends := o.next >= len(arg)
	done := func(n int) int {
		o.ind += int32(n)
		o.next = 0
		return n
	}
	k := strings.IndexByte(list, ch)
	if k < 0 || ch == ':' {
		o.opt = int32(ch)
		say("invalid option -- '%c'", ch)
		if ends {
			used = done(1)
		}
		return '?', used
	}
	takes := strings.HasPrefix(list[k+1:], ":")
	maybe := strings.HasPrefix(list[k+1:], "::")
	switch {
	case !takes:
		if ends {
			used = done(1)
		}
	case !ends:
		o.arg = At(args[o.ind], o.next)
		used = done(1)
	case maybe:
		used = done(1)
	case int(o.ind)+1 >= len(args):
		used = done(1)
		o.opt = int32(ch)
		say("option requires an argument -- '%c'", ch)
		return missing(), used
	default:
		o.arg = args[o.ind+1]
		used = done(2)
	}
	return int32(ch), used
}

// find1 is the long option of that name, or the only one that begins so, and its index.
func find1(longs unsafe.Pointer, name string) (found *longOption, index int) {
	several := false
	for i := 0; ; i++ {
		l := (*longOption)(unsafe.Add(longs, uintptr(i)*unsafe.Sizeof(longOption{})))
		if l.name == nil {
			break
		}
		switch n := string(text(l.name)); {
		case n == name:
			return l, i
		case strings.HasPrefix(n, name):
			several = found != nil
			found, index = l, i
		}
	}
	if several {
		return nil, 0
	}
	return found, index
}
