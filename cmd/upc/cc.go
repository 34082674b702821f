package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/upc/front"
	"github.com/argon-go/argon/internal/upc/gen"
)

// suffixes are those of files that are compiled or linked.
var suffixes = []string{".upc", ".c", ".i", ".o", ".a"}

// input is a source file, with what it is compiled with.
type input struct {
	front.Config
	name, text string
	member     bool // of a library: it is linked if something needs it
}

// object is the file that -c makes: the source and all headers that it includes, so that these may change or go away.
type object struct {
	File            string
	Include, Define []string
	Threads         int
	Reads           map[string]string
}

// objectLine begins an object.
const objectLine = "upc object 1\n"

// inputs are the files of a program: sources, and those of objects and libraries.
func inputs(o *options) (list []input, err error) {
	for _, f := range o.files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		switch filepath.Ext(f) {
		case ".o":
			in, err := fromObject(f, b)
			if err != nil {
				return nil, err
			}
			if o.threads == 0 {
				o.threads = in.Threads
			} else if in.Threads != 0 && in.Threads != o.threads {
				return nil, fmt.Errorf("%s was compiled for %d threads, and not for %d (-T)", f, in.Threads, o.threads)
			}
			list = append(list, in)
		case ".a":
			all, err := fromLibrary(f, b)
			if err != nil {
				return nil, err
			}
			list = append(list, all...)
		default:
			in := input{front.Config{Threads: o.threads, Include: o.include, Define: o.define}, f, string(b), false}
			if o.object {
				o.reads = map[string]string{f: string(b)}
				in.Read = func(name string) ([]byte, error) {
					b, err := os.ReadFile(name)
					if err == nil {
						o.reads[name] = string(b)
					}
					return b, err
				}
			}
			list = append(list, in)
		}
	}
	return list, nil
}

// fromObject is the source in an object.
func fromObject(name string, b []byte) (in input, err error) {
	rest, ok := bytes.CutPrefix(b, []byte(objectLine))
	if !ok {
		return in, fmt.Errorf("%s: not an object of upc -c", name)
	}
	var obj object
	if err := json.Unmarshal(rest, &obj); err != nil {
		return in, fmt.Errorf("%s: %w", name, err)
	}
	return input{front.Config{Threads: obj.Threads, Include: obj.Include, Define: obj.Define, Read: func(name string) ([]byte, error) {
		if s, ok := obj.Reads[name]; ok {
			return []byte(s), nil
		}
		return nil, fs.ErrNotExist
	}}, obj.File, obj.Reads[obj.File], false}, nil
}

// fromLibrary is the objects of an archive, as ar(1) makes it: headers of 60 bytes, of which the size is at 48.
func fromLibrary(name string, b []byte) (list []input, err error) {
	rest, ok := bytes.CutPrefix(b, []byte("!<arch>\n"))
	if !ok {
		return nil, fmt.Errorf("%s: not an archive", name)
	}
	for len(rest) >= 60 {
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if err != nil || size < 0 || size > len(rest)-60 {
			return nil, fmt.Errorf("%s: a damaged archive", name)
		}
		body := rest[60 : 60+size]
		if bytes.HasPrefix(body, []byte(objectLine)) {
			in, err := fromObject(name, body)
			if err != nil {
				return nil, err
			}
			in.member = true
			list = append(list, in)
		}
		rest = rest[min(60+size+size%2, len(rest)):]
	}
	return list, nil
}

// linked is units with those of libraries that define what is used and not defined so far.
func linked(units, members []*front.Unit) []*front.Unit {
	for {
		defined, used := map[string]bool{}, map[string]bool{}
		for _, u := range units {
			for _, s := range u.Syms {
				if !s.Static {
					defined[s.Name] = defined[s.Name] || s.Defined
					used[s.Name] = used[s.Name] || s.Used
				}
			}
		}
		used["main"] = true
		i := slices.IndexFunc(members, func(u *front.Unit) bool {
			return slices.ContainsFunc(u.Syms, func(s *front.Sym) bool { return s.Defined && !s.Static && used[s.Name] && !defined[s.Name] })
		})
		if i < 0 {
			return units
		}
		units = append(units, members[i])
		members = slices.Delete(members, i, i+1)
	}
}

// responses is args with the contents of files for @FILE.
func responses(args []string) (all []string, err error) {
	for _, a := range args {
		name, ok := strings.CutPrefix(a, "@")
		if !ok {
			all = append(all, a)
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, words(string(b))...)
	}
	return all, nil
}

// words are those of a response file: separated by spaces, which quotation marks and backslashes keep.
func words(s string) (all []string) {
	var word strings.Builder
	var quote byte
	begun := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && quote != '\'' && i+1 < len(s):
			i++
			word.WriteByte(s[i])
			begun = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, begun = c, true
		case quote == 0 && strings.IndexByte(" \t\r\n", c) >= 0:
			if begun {
				all = append(all, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if begun {
		all = append(all, word.String())
	}
	return all
}

// cc is the command as a C compiler is called.
func cc(args []string, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintln(stderr, "upc:", err)
		return 2
	}
	args, err := responses(args)
	if err != nil {
		return fail(err)
	}
	var o options
	var libraries, folders []string
	var segment, mode string // -E or -S
	for i := 0; i < len(args); i++ {
		a := args[i]
		// value is that of a flag of one letter or word: behind it, behind = or the next argument.
		value := func(flag string) (v string, ok bool) {
			if a == flag {
				if i+1 == len(args) {
					err = fmt.Errorf("%s needs an argument", flag)
					return "", true
				}
				i++
				return args[i], true
			}
			rest, ok := strings.CutPrefix(a, flag)
			return strings.TrimPrefix(rest, "="), ok
		}
		switch {
		case a == "-c":
			o.object = true
		case a == "-S", a == "-E":
			mode = a
		case slices.Contains(suffixes, filepath.Ext(a)) && a[0] != '-':
			o.files = append(o.files, a)
		case a == "-fno-strict-aliasing":
			o.define = append(o.define, front.MayAlias)
		case len(a) > 1 && strings.IndexByte("OgWfmpwvansMq", a[1]) >= 0 && !strings.HasPrefix(a, "-fupc-threads") && !strings.HasPrefix(a, "-shared-heap") && a[0] == '-':
			if a == "-MF" || a == "-MT" || a == "-MQ" { // of what the compiler does not write
				i++
			}
		default:
			if v, ok := value("-fupc-threads"); ok {
				o.threads, err = strconv.Atoi(strings.TrimPrefix(v, "-"))
			} else if v, ok := value("-shared-heap"); ok {
				segment = v
			} else if v, ok := value("-o"); ok {
				o.out = v
			} else if v, ok := value("-d"); ok {
				if mode, o.pass = "-S", v; passes[v] == nil {
					err = fmt.Errorf("-d %s: the passes are typed, opt and go", v)
				}
			} else if v, ok := value("-D"); ok {
				o.define = append(o.define, v)
			} else if v, ok := value("-U"); ok {
				o.define = append(o.define, "!"+v)
			} else if v, ok := value("-I"); ok {
				o.include = append(o.include, v)
			} else if v, ok := value("-L"); ok {
				folders = append(folders, v)
			} else if v, ok := value("-l"); ok {
				libraries = append(libraries, v)
			} else if v, ok := value("-T"); ok {
				if o.threads, err = strconv.Atoi(v); err != nil || o.threads < 1 {
					err = fmt.Errorf("-T %s: a number of threads is at least 1", v)
				}
			} else {
				err = fmt.Errorf("unknown flag or file %q; files end in .upc, .c, .i, .o or .a", a)
			}
		}
		if err != nil {
			return fail(err)
		}
	}
	for _, l := range libraries { // of the system's, the compiler has what it has
		for _, f := range folders {
			name := filepath.Join(f, "lib"+l+".a")
			if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, []byte(objectLine)) {
				o.files = append(o.files, name)
				break
			}
		}
	}
	for _, d := range o.define {
		if !macro.MatchString(strings.TrimPrefix(d, "!")) {
			return fail(fmt.Errorf("-D %s: a macro's name is an identifier", d))
		}
	}
	if segment != "" {
		if o.segment, err = jobenv.ParseSize(strings.TrimSuffix(strings.ToUpper(segment), "B")); err != nil {
			return fail(fmt.Errorf("-shared-heap: %w", err))
		}
	}
	switch {
	case len(o.files) == 0:
		return fail(errors.New("no input files"))
	case o.object && o.out != "" && len(o.files) > 1:
		return fail(errors.New("-o names one file, and -c makes one of each source"))
	case mode != "":
		return writeText(&o, mode, stdout, stderr)
	case !o.object:
		if o.out == "" {
			o.out = "a.out"
		}
		return build(&o, stderr)
	}
	status := 0
	for _, f := range o.files {
		if e := filepath.Ext(f); e == ".o" || e == ".a" {
			continue
		}
		one := o
		one.files = []string{f}
		status = max(status, one.writeObject(stderr))
	}
	return status
}

// writeText prints the preprocessed sources (-E), or the Go of the program or what else -d says (-S), or writes it to the file of -o.
// Without a word -S makes a file of Go, as cc makes one of assembly.
func writeText(o *options, mode string, stdout, stderr io.Writer) int {
	text := ""
	var warnings front.Errors
	var err error
	if mode == "-E" {
		list, failed := inputs(o)
		for err = failed; len(list) > 0 && err == nil; list = list[1:] {
			var one string
			var more front.Errors
			one, more, err = front.Preprocess(&list[0].Config, list[0].name, list[0].text)
			text, warnings = text+one, append(warnings, more...)
		}
	} else {
		if o.pass == "" {
			if o.pass = "go"; o.out == "" {
				o.out = strings.TrimSuffix(filepath.Base(o.files[0]), filepath.Ext(o.files[0])) + ".go"
			}
		}
		o.object = false
		var files map[string]gen.File
		if files, warnings, err = compile(o); err == nil {
			text = passes[o.pass](o, files)
		}
	}
	status := report(warnings, err, stderr)
	switch {
	case err != nil:
		return status
	case o.out == "" || o.out == "-":
		_, err = io.WriteString(stdout, text)
	default:
		err = os.WriteFile(o.out, []byte(text), 0o666)
	}
	if err != nil {
		fmt.Fprintln(stderr, "upc:", err)
		return 2
	}
	return 0
}

// writeObject checks a source file and writes its object.
func (o *options) writeObject(stderr io.Writer) int {
	_, warnings, err := compile(o)
	if status := report(warnings, err, stderr); err != nil {
		return status
	}
	obj := object{o.files[0], o.include, o.define, o.threads, o.reads}
	b, err := json.Marshal(obj)
	if err == nil {
		name := o.out
		if name == "" {
			name = strings.TrimSuffix(filepath.Base(obj.File), filepath.Ext(obj.File)) + ".o"
		}
		err = os.WriteFile(name, append([]byte(objectLine), b...), 0o666)
	}
	if err != nil {
		fmt.Fprintln(stderr, "upc:", err)
		return 2
	}
	return 0
}

// report prints what the compiler says, and is the status if err is an error.
func report(warnings front.Errors, err error, stderr io.Writer) int {
	if len(warnings) > 0 {
		fmt.Fprintln(stderr, warnings.Show())
	}
	var l front.Errors
	switch {
	case errors.As(err, &l):
		fmt.Fprintln(stderr, l.Show())
	case errors.As(err, new(*fs.PathError)):
		fmt.Fprintln(stderr, "upc:", err)
		return 2
	case err != nil:
		fmt.Fprintln(stderr, err)
	}
	return 1
}

// build links a program.
func build(o *options, stderr io.Writer) int {
	files, warnings, err := compile(o)
	if status := report(warnings, err, stderr); err != nil {
		return status
	}
	dir, err := os.MkdirTemp("", "upc-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = writeModule(dir, files)
	}
	program := ""
	if err == nil {
		program, err = filepath.Abs(o.out)
	}
	if err == nil {
		err = buildLocated(dir, program, files, stderr, "-tags="+o.tags)
	}
	if err != nil {
		fmt.Fprintln(stderr, "upc:", err)
		return 2
	}
	return 0
}
