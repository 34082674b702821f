package launch

import (
	"os"
	"testing"

	"github.com/argon-go/argon/conduits/udp/seal"
)

// Ranks load the key from the file that they inherit, and cannot change it.
func TestKeyFile(t *testing.T) {
	key := seal.NewKey()
	f, err := keyFile(key)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var in inheritance
	in.file(f, seal.EnvKeyFile, "/proc/self/fd/")
	if in.vars[0] != seal.EnvKeyFile+"=/proc/self/fd/3" {
		t.Errorf("ranks are told %q", in.vars)
	}
	t.Setenv(seal.EnvKey, "")
	for range 2 { // each reader starts at the beginning
		t.Setenv(seal.EnvKeyFile, fdName(f))
		got, err := seal.LoadKey()
		if err != nil || !got.Equal(key) {
			t.Fatalf("loading the key: %v", err)
		}
	}
	if fi, err := f.Stat(); err != nil || fi.Mode().Perm() != 0o400 {
		t.Errorf("the file's mode is %v, %v", fi.Mode(), err)
	}
	if _, err := f.WriteAt([]byte("0"), 0); err == nil {
		t.Error("the file that ranks inherit can be written to")
	}
	if os.Getuid() != 0 {
		if w, err := os.OpenFile(fdName(f), os.O_RDWR, 0); err == nil {
			w.Close()
			t.Error("the file can be opened for writing")
		}
	}
}
