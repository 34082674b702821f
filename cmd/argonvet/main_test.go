package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/testkit/testmain"
)

// envTool is set where go vet runs this test program as its tool.
const envTool = "ARGONVET_TOOL"

func TestMain(m *testing.M) {
	if os.Getenv(envTool) != "" {
		main()
	}
	os.Exit(testmain.Run(m))
}

// TestDrops has go vet find in testdata/drops what its comments say, and nothing else.
func TestDrops(t *testing.T) {
	const file = "testdata/drops/drops.go"
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("go", "vet", "-vettool="+self, "./testdata/drops")
	c.Env = append(os.Environ(), envTool+"=1")
	out, err := c.CombinedOutput()
	if err == nil {
		t.Error("go vet finds nothing")
	}
	var found []string
	for _, m := range regexp.MustCompile(`drops\.go:(\d+):\d+: (.*)`).FindAllStringSubmatch(string(out), -1) {
		found = append(found, m[1]+": "+m[2])
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i, line := range strings.Split(string(text), "\n") {
		if _, w, ok := strings.Cut(line, "// want: "); ok {
			want = append(want, fmt.Sprintf("%d: %s", i+1, w))
		}
	}
	slices.Sort(found)
	slices.Sort(want)
	if len(want) == 0 || !slices.Equal(found, want) {
		t.Errorf("found:\n%s\nwant:\n%s\nall:\n%s", strings.Join(found, "\n"), strings.Join(want, "\n"), out)
	}
}
