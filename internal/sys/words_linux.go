package sys

import (
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// CopiesWords reports whether ReadProcess and WriteProcess copy 8 bytes that are aligned at both ends by one load
// and one store. They end in the kernel's copies to and from a process's own memory. On amd64 (Linux 6.4 to 6.18,
// arch/x86/include/asm/uaccess_64.h, copy_user_generic) that is rep movsb where the processor has fsrm, and what
// accesses it makes nothing defines; else rep_movs_alternative (arch/x86/lib/copy_user_64.S), which moves 8 bytes by
// one register, and fewer byte by byte. On arm64 (arch/arm64/lib/copy_template.S) it is one register, too, where
// the processor has no instructions for copies of memory (FEAT_MOPS).
func CopiesWords() bool {
	b, err := os.ReadFile("/proc/cpuinfo")
	return err == nil && copiesWords(runtime.GOARCH, release(), string(b))
}

func copiesWords(arch, release, cpuinfo string) bool {
	var flags []string
	for line := range strings.Lines(cpuinfo) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "flags" || strings.TrimSpace(name) == "Features" {
			flags = strings.Fields(value)
			break
		}
	}
	switch arch {
	case "amd64":
		major, rest, _ := strings.Cut(release, ".")
		minor, _, _ := strings.Cut(rest, ".")
		old := len(major) == 1 && (major < "6" || major == "6" && len(minor) == 1 && minor < "4")
		return len(flags) > 0 && !old && !slices.Contains(flags, "fsrm")
	case "arm64":
		return len(flags) > 0 && !slices.Contains(flags, "mops")
	}
	return false
}

// release is the kernel's, such as 6.18.1, or "0" if it does not say.
func release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "0"
	}
	return unix.ByteSliceToString(u.Release[:])
}
