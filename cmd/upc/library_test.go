package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/upc/front"
)

// libraryHeaders includes all headers.
func libraryHeaders(t *testing.T) (text string) {
	root := filepath.FromSlash("../../internal/upc/front/include")
	for _, pattern := range []string{"*.h", "*/*.h"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, f := range files {
			name, err := filepath.Rel(root, f)
			if err != nil {
				t.Fatal(err)
			}
			if name != "iso646.h" { // whose words may be names here
				text += "#include <" + filepath.ToSlash(name) + ">\n"
			}
		}
	}
	return text
}

// TestLibraryCalls: Go takes a call of each function that a header declares
// as a statement and as a value.
func TestLibraryCalls(t *testing.T) {
	headers := libraryHeaders(t)
	u, err := front.Parse(&front.Config{}, "headers.upc", headers)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(headers + "long sink;\n")
	n := 0
	for _, s := range u.Syms {
		if s.Storage != front.Function || !s.Header || s.Defined || s.Name == "__upc_va_start" || s.Name == "__upc_setjmp" {
			continue
		}
		n++
		fmt.Fprintf(&b, "void call%d(int n) {\n", n)
		var args []string
		for i, p := range s.Type.Params {
			if p.Kind == front.Pointer && p.Elem.Kind == front.Func {
				args = append(args, "0")
				continue
			}
			args = append(args, string(rune('a'+i)))
			fmt.Fprintf(&b, "  static %v %s;\n", p, args[i])
		}
		call := s.Name + "(" + strings.Join(args, ", ") + ")"
		fmt.Fprintf(&b, "  %s;\n  (void)%s;\n", call, call)
		switch r := s.Type.Elem; {
		case r.Kind == front.Pointer:
			fmt.Fprintf(&b, "  if (%s == 0 && n)\n    sink++;\n", call)
		case r.Scalar():
			fmt.Fprintf(&b, "  if (n && %s + 1 == sink)\n    sink = %s;\n", call, call)
		case r.Kind != front.Void:
			fmt.Fprintf(&b, "  upc_thread_info_t all = %s;\n  sink = all.guaranteedCastable;\n", call)
		}
		b.WriteString("}\n")
	}
	b.WriteString("int main(void) { return 0; }\n")
	if n < 200 {
		t.Errorf("the headers have %d functions", n)
	}
	file := filepath.Join(t.TempDir(), "calls.upc")
	if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := newTyping(t).check(t, "calls", options{files: []string{file}}); err != nil {
		t.Error(err)
	}
}
