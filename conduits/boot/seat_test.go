package boot

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/place"
	"github.com/argon-go/argon/internal/testkit/sandbox"
)

// TestOtherLaunchersRanksAreBound has ranks that another launcher started divide the
// processors, all threads of them, unless it has bound them or the user says no.
func TestOtherLaunchersRanksAreBound(t *testing.T) {
	sandbox.OnTwoProcessors(t, func(two []int) {
		first, second, both := place.List(two[:1]), place.List(two[1:]), place.List(two)
		for _, tc := range []struct {
			size int
			env  string
			want []string // by rank, sorted
			note string
		}{
			{2, "", []string{"[" + first + "] at once 2 alone true", "[" + second + "] at once 2 alone true"}, "processors " + second},
			{2, "GOMAXPROCS=1", []string{"[" + first + "] at once 1 alone true", "[" + second + "] at once 1 alone true"}, "processors " + second},
			{3, "", []string{"[" + first + "] at once 2 alone false", "[" + first + "] at once 2 alone false", "[" + second + "] at once 2 alone true"}, "processors " + second},
			{2, "ARGON_BIND=none", []string{"[" + both + "] at once 2 alone true", "[" + both + "] at once 2 alone true"}, "not bound (ARGON_BIND)"},
			{2, "ARGON_BIND=numa", []string{"[" + both + "] at once 2 alone true", "[" + both + "] at once 2 alone true"}, "processors " + both},
			{2, "SLURM_CPU_BIND_TYPE=mask_cpu:", []string{"[" + both + "] at once 2 alone true", "[" + both + "] at once 2 alone true"}, "processors " + both + ", as Slurm has it"},
		} {
			// The ranks are one host's, in the order in which they were started.
			var env []string
			if tc.env != "" {
				env = append(env, tc.env)
			}
			cmds, out := ranks(t, "where", tc.size, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
				append(env, "ARGON_JOB_KEY="+jobkey.New().Reveal(), "ARGON_VERBOSEENV=1", fmt.Sprintf("OMPI_COMM_WORLD_LOCAL_SIZE=%d", tc.size))...)
			var got []string
			for r, c := range cmds {
				if err := c.Wait(); err != nil {
					t.Errorf("%s: rank %d: %v\n%s", tc.env, r, err, &out[r])
				}
				_, line, _ := strings.Cut(out[r].String(), "threads on ")
				line, _, _ = strings.Cut(line, "\n")
				got = append(got, line)
			}
			slices.Sort(got)
			if !slices.Equal(got, tc.want) {
				t.Errorf("%d ranks, %q: they run on %q, want %q", tc.size, tc.env, got, tc.want)
			}
			last := tc.size - 1
			if !strings.Contains(out[last].String(), fmt.Sprintf("argon: rank %d: %s", last, tc.note)) {
				t.Errorf("%d ranks, %q: rank %d does not say %q: %s", tc.size, tc.env, last, tc.note, &out[last])
			}
		}
	})
}

func TestBoundBy(t *testing.T) {
	all, err := sys.AffinityOf(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	getenv := func(kv string) func(string) string {
		return func(key string) string {
			if k, v, _ := strings.Cut(kv, "="); k == key {
				return v
			}
			return ""
		}
	}
	for _, tc := range []struct {
		env  string
		cpus []int
		want string
	}{
		{"", all, ""},
		{"SLURM_CPU_BIND_TYPE=none", all, ""},
		{"SLURM_CPU_BIND_TYPE=mask_cpu:", all, "Slurm"},
		{"OMPI_MCA_orte_bound_at_launch=1", all, "Open MPI"},
	} {
		if got := boundBy(getenv(tc.env), tc.cpus); got != tc.want {
			t.Errorf("%q: bound by %q, want %q", tc.env, got, tc.want)
		}
	}
	if got := boundBy(getenv(""), all[1:]); len(all) > 1 && got == "" {
		t.Errorf("bound to %v of %v by nothing", all[1:], all)
	}
}

func TestLeastTaken(t *testing.T) {
	for _, tc := range []struct{ part, loads, want []int }{
		{[]int{0, 1}, []int{0, 0, 0, 0}, []int{0, 1}},
		{[]int{0, 1}, []int{0, 1, 0, 0}, []int{0}},
		{[]int{0, 1}, []int{1, 1, 0, 0}, []int{2, 3}},
		{[]int{0, 1}, []int{1, 1, 1, 0}, []int{0, 3}},
		{[]int{0, 1}, []int{1, 1, 1, 1}, []int{0, 1}},
		{[]int{2}, []int{1, 1, 1, 1}, []int{2}},
	} {
		if got := leastTaken(tc.part, []int{0, 1, 2, 3}, func(cpu int) int { return tc.loads[cpu] }); !slices.Equal(got, tc.want) {
			t.Errorf("of %v where %v are taken: %v, want %v", tc.part, tc.loads, got, tc.want)
		}
	}
}
