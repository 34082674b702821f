package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	flagLoops    = flag.Int("upc.loops", 120, "how many random loops TestRandomLoops compiles")
	flagLoopSeed = flag.Uint64("upc.seed", 1, "what TestRandomLoops draws them from")
)

// loops makes a program of random loops.
type loops struct {
	*rand.Rand
	b      strings.Builder
	forall bool   // iterations are of several threads
	write  string // what the loop may write of shared memory then
}

func (l *loops) pick(s ...string) string { return s[l.IntN(len(s))] }

// index is an index of arrays, all of which have 16 elements for each thread.
func (l *loops) index(depth int) string {
	switch l.IntN(5) {
	case 0, 1:
		return "i"
	case 2:
		return l.pick("(i + 1)", "(i - 1)", "(i + 3)", "(2 * i)")
	case 3:
		return fmt.Sprint(l.IntN(8))
	}
	return fmt.Sprintf("((%s) %% 40)", l.value(depth-1))
}

// place is a place of shared or private memory.
func (l *loops) place(depth int, write bool) string {
	names := []string{"a", "b", "c", "d", "p", "r", "q"}
	if l.forall {
		if write {
			return l.pick(l.write+"[i]", "u", "v", "priv["+l.index(depth)+"]")
		}
		for {
			if n := l.pick(names...); n == l.write {
				return n + "[i]"
			} else if !aliases[l.write][n] {
				return l.element(n, depth)
			}
		}
	}
	switch l.IntN(6) {
	case 0:
		return l.pick("u", "v", "w")
	case 1:
		return "priv[" + l.index(depth) + "]"
	case 2:
		return "s." + l.pick("x", "y")
	}
	return l.element(l.pick(append(names, "q")...), depth)
}

// element is one of an array, or of where q leads: the thread's part of a, from its beginning on.
func (l *loops) element(name string, depth int) string {
	if name == "q" {
		return "q[(" + l.index(depth) + ") % 16]"
	}
	return name + "[" + l.index(depth) + "]"
}

// aliases lists the names that lead to places of others.
var aliases = map[string]map[string]bool{
	"a": {"p": true, "q": true}, "b": {"r": true}, "c": {}, "d": {},
}

func (l *loops) value(depth int) string {
	if depth <= 0 {
		return l.pick("i", "3", "u", "v", "7")
	}
	switch l.IntN(7) {
	case 0:
		return l.pick("i", "u", "v", fmt.Sprint(l.IntN(100)))
	case 1:
		return fmt.Sprintf("(%s %s %s)", l.value(depth-1), l.pick("+", "*", "^"), l.value(depth-1))
	case 2:
		if !l.forall {
			return fmt.Sprintf("(%s & 1 ? %s : %s)", l.value(depth-1), l.value(depth-1), l.value(depth-1))
		}
	}
	return l.place(depth, false)
}

func (l *loops) statement(indent string, depth int) {
	switch l.IntN(8) {
	case 0:
		fmt.Fprintf(&l.b, "%sif ((%s) & 1) {\n", indent, l.value(1))
		l.statement(indent+"  ", depth-1)
		fmt.Fprintf(&l.b, "%s}\n", indent)
		return
	case 1, 2:
		fmt.Fprintf(&l.b, "%s%s = %s;\n", indent, l.pick("u", "v"), l.value(depth))
		return
	case 3:
		fmt.Fprintf(&l.b, "%s%s %s= %s;\n", indent, l.place(depth, true), l.pick("+", "^"), l.value(depth))
		return
	}
	fmt.Fprintf(&l.b, "%s%s = %s;\n", indent, l.place(depth, true), l.value(depth))
}

// loop writes a function with one loop.
func (l *loops) loop(k int) {
	kind := l.IntN(4)
	l.forall = kind == 3
	l.write = l.pick("a", "b", "c", "d")
	fmt.Fprintf(&l.b, "static void loop%d(void) {\n  int i = 1;\n  unsigned u = 5, v = 9;\n", k)
	from, to := l.IntN(3)+1, l.pick("14", "13", "n", "n - 2")
	// Indices are at most twice that, of 48 with three threads.
	switch kind {
	case 0, 1:
		fmt.Fprintf(&l.b, "  for (i = %d; i < %s; i++) {\n", from, to)
	case 2:
		fmt.Fprintf(&l.b, "  while (i < %s) {\n", to)
	case 3:
		affinity := l.pick("&"+l.write+"[i]", "i", "&a[i]", "continue")
		if affinity == "continue" { // all threads do all
			l.write = "none"
		}
		fmt.Fprintf(&l.b, "  upc_forall (i = %d; i < %s; i++; %s) {\n", from, to, affinity)
	}
	if l.IntN(2) == 0 {
		fmt.Fprintf(&l.b, "    unsigned %s = %s;\n", l.pick("w", "j"), strings.NewReplacer("w", "u").Replace(l.value(2)))
	}
	for range 1 + l.IntN(4) {
		if l.write == "none" {
			fmt.Fprintf(&l.b, "    %s %s= %s;\n", l.pick("u", "v", "priv[i]"), l.pick("", "+", "^"), l.value(3))
		} else {
			l.statement("    ", 3)
		}
	}
	if kind == 2 {
		l.b.WriteString("    i++;\n")
	}
	fmt.Fprintf(&l.b, "  }\n  out += u * 3 + v * 5 + i;\n}\n")
}

const loopsHead = `#include <upc_relaxed.h>
#include <stdio.h>
#define M (16 * THREADS)
shared unsigned a[M];
shared [4] unsigned b[M];
shared [16] unsigned c[M];
shared [7] unsigned char d[M];
shared unsigned sums[THREADS];
struct two { unsigned x, y; };
shared struct two s;
static unsigned priv[200], out, w = 4;
static shared unsigned *p;
static shared [4] unsigned *r;
static unsigned *q;
static int n;

static void begin(void) {
  int i;
  upc_barrier;
  if (MYTHREAD == 0) {
    for (i = 0; i < M; i++) {
      a[i] = i * 7 % 48;
      b[i] = (i * 5 + 3) % 48;
      c[i] = (i * 11 + 1) % 48;
      d[i] = (i * 13 + 2) % 48;
    }
    s.x = 3;
    s.y = 8;
  }
  for (i = 0; i < 200; i++)
    priv[i] = (i * 3 + MYTHREAD) % 31;
  n = 15;
  w = 4;
  out = 0;
  p = &a[2];
  r = &b[1];
  q = (unsigned *)&a[MYTHREAD];
  upc_barrier;
}

static void end(int which) {
  int i;
  for (i = 0; i < 200; i++)
    out = out * 31 + priv[i];
  sums[MYTHREAD] = out * 31 + w;
  upc_barrier;
  if (MYTHREAD == 0) {
    unsigned all = s.x * 17 + s.y;
    for (i = 0; i < M; i++)
      all = all * 31 + a[i] + b[i] * 3 + c[i] * 5 + d[i] * 7;
    printf("%d: %u", which, all);
    for (i = 0; i < THREADS; i++)
      printf(" %u", sums[i]);
    printf("\n");
  }
}

`

// TestRandomLoops: random loops, over arrays that pointers lead to as well, give with messages
// that overtake each other what they give where all threads are reached by load and store, which
// goes other ways in the code that is made.
func TestRandomLoops(t *testing.T) {
	l := &loops{Rand: rand.New(rand.NewPCG(*flagLoopSeed, 0))}
	l.b.WriteString(loopsHead)
	var calls strings.Builder
	for k := range *flagLoops {
		l.loop(k)
		fmt.Fprintf(&calls, "  begin();\n  %sloop%d();\n  upc_barrier;\n  end(%d);\n", map[bool]string{false: "if (MYTHREAD == 0)\n    "}[l.forall], k, k)
	}
	fmt.Fprintf(&l.b, "int main(void) {\n%s  return 0;\n}\n", calls.String())
	file := filepath.Join(t.TempDir(), "loops.upc")
	if err := os.WriteFile(file, []byte(l.b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	b := newBundle(t)
	b.add(t, "loops", 0, file)
	b.build(t)
	want, err := b.run(t, "shm", 3, "loops")
	if err != nil {
		t.Fatalf("%v\n%s", err, want)
	}
	environments := []string{"ARGON_CONDUIT=udp"}
	for seed := 1; seed <= 3; seed++ {
		environments = append(environments, fmt.Sprintf("ARGON_CONDUIT=sim ARGON_SIM=seed=%d,jitter=20us", seed))
	}
	source := strings.Split(l.b.String(), "static void loop")
	for _, e := range environments {
		got, err := output(t.TempDir(), append(strings.Fields(e), "ARGON_RANKS=3"), b.bin("loops"))
		if err != nil {
			t.Fatalf("%s: %v\n%s", e, err, got)
		}
		if got == want {
			continue
		}
		w, g := map[string]bool{}, strings.Split(got, "\n")
		for _, line := range strings.Split(want, "\n") {
			w[line] = true
		}
		for _, line := range g {
			if !w[line] {
				var k int
				fmt.Sscanf(line, "%d:", &k)
				t.Errorf("%s, -upc.seed %d: %s, not as on shared memory:\nstatic void loop%s", e, *flagLoopSeed, line, source[k+1])
			}
		}
	}
}
