package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestModel does the same to files of the operating system and to copies in memory: results and contents are the same, and
// the files that were there stay as they are.
func TestModel(t *testing.T) {
	flags := []int{
		os.O_RDONLY, os.O_WRONLY | os.O_CREATE | os.O_TRUNC, os.O_RDWR, os.O_WRONLY | os.O_CREATE | os.O_APPEND,
		os.O_RDWR | os.O_CREATE | os.O_EXCL, os.O_RDWR | os.O_CREATE, os.O_WRONLY | os.O_TRUNC,
	}
	dirs := [2]string{t.TempDir(), t.TempDir()} // of the operating system, and with copies
	choose := func(memory int) {
		t.Setenv("ARGON_SIM_FILES", [2]string{"disk", "memory"}[memory])
	}
	kind := func(err error) error {
		for _, k := range []error{fs.ErrNotExist, fs.ErrExist} {
			if errors.Is(err, k) {
				return k
			}
		}
		return err
	}
	rapid.Check(t, func(t *rapid.T) {
		copies.all = nil
		names := []string{"a", "b", "no/c"}
		for _, d := range dirs {
			os.Remove(filepath.Join(d, "b"))
			if err := os.WriteFile(filepath.Join(d, "a"), []byte("as it was"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 12).Draw(t, "calls") {
			name := rapid.SampledFrom(names).Draw(t, "name")
			if other := rapid.SampledFrom(append(names, "", "", "")).Draw(t, "other"); other != "" {
				remove := rapid.Bool().Draw(t, "remove")
				var err [2]error
				for i, d := range dirs {
					choose(i)
					_, failed := os.Stat(Path(filepath.Join(d, name)))
					if err[i] = Rename(filepath.Join(d, name), filepath.Join(d, other)); remove {
						err[i] = Remove(filepath.Join(d, name))
					}
					err[i] = errors.Join(kind(failed), kind(err[i]))
				}
				if fmt.Sprint(err[0]) != fmt.Sprint(err[1]) {
					t.Fatalf("rename or remove %s: %v, and in memory %v", name, err[0], err[1])
				}
				continue
			}
			flag := rapid.SampledFrom(flags).Draw(t, "flags")
			size := rapid.Int64Range(0, 20).Draw(t, "size")
			text := rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "text")
			var err, written [2]error
			var read [2]string
			for i, d := range dirs {
				choose(i)
				var f *os.File
				if f, err[i] = Open(filepath.Join(d, name), flag, 0o600); err[i] != nil {
					continue
				}
				if _, written[i] = f.Write(text); written[i] == nil && size < 10 {
					written[i] = f.Truncate(size)
				}
				written[i] = errors.Unwrap(written[i])
				f.Close()
				if f, err := Open(filepath.Join(d, name), os.O_RDONLY, 0); err != nil {
					t.Fatal(err)
				} else if b, err := io.ReadAll(f); err != nil {
					t.Fatal(err)
				} else {
					f.Close()
					read[i] = string(b)
				}
			}
			if kind(err[0]) != kind(err[1]) || written[0] != written[1] || read[0] != read[1] {
				t.Fatalf("open %s with %#x: %v, %v, %q, and in memory %v, %v, %q", name, flag, err[0], written[0], read[0], err[1], written[1], read[1])
			}
		}
		all, err := os.ReadDir(dirs[1])
		if b, failed := os.ReadFile(filepath.Join(dirs[1], "a")); err != nil || failed != nil || len(all) != 1 || string(b) != "as it was" {
			t.Fatalf("what was there is %v, %q; %v, %v", all, b, err, failed)
		}
		for _, c := range copies.all {
			if c != nil {
				c.Close()
			}
		}
		open, err := filepath.Glob("/proc/self/fd/*")
		if err != nil || len(open) == 0 {
			t.Fatalf("no files are open: %v", err)
		}
		for _, fd := range open {
			if to, _ := os.Readlink(fd); strings.HasPrefix(to, "/memfd:") {
				t.Fatalf("%s is left open", to)
			}
		}
	})
}
