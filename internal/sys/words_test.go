package sys

import "testing"

func TestCopiesWords(t *testing.T) {
	for _, c := range []struct {
		arch, release, cpuinfo string
		want                   bool
	}{
		{"amd64", "6.18.44", "processor\t: 0\nflags\t\t: fpu erms rep_good\n", true},
		{"amd64", "6.4.0", "flags\t\t: fpu\n", true},
		{"amd64", "10.0.0", "flags\t\t: fpu\n", true},
		{"amd64", "6.18.44", "processor\t: 0\nflags\t\t: fpu erms fsrm\nprocessor\t: 1\nflags\t\t: fpu\n", false},
		{"amd64", "6.3.9", "flags\t\t: fpu\n", false},
		{"amd64", "5.15.0", "flags\t\t: fpu\n", false},
		{"amd64", "6.18.44", "", false},
		{"arm64", "5.10.1", "processor\t: 0\nFeatures\t: fp asimd\n", true},
		{"arm64", "6.18.44", "Features\t: fp asimd mops\n", false},
		{"riscv64", "6.18.44", "flags\t: x\n", false},
	} {
		if got := copiesWords(c.arch, c.release, c.cpuinfo); got != c.want {
			t.Errorf("%s, Linux %s, %q: %v", c.arch, c.release, c.cpuinfo, got)
		}
	}
	t.Log("here: ", CopiesWords())
}
