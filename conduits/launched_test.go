package conduits_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits"
)

func TestLaunched(t *testing.T) {
	for _, c := range []struct{ rank, size, want string }{
		{"7", "4", `ARGON_RANK="7"`},
		{"4", "4", "0 to 3"},
		{"-1", "4", `"-1"`},
		{"x", "4", `"x"`},
		{"", "4", `ARGON_RANK=""`},
		{"0", "", `ARGON_SIZE=""`},
		{"0", "0", `ARGON_SIZE="0"`},
		{"0", "many", `"many"`},
		{"0", "9999999", "65536"},
	} {
		env := map[string]string{"ARGON_RANK": c.rank, "ARGON_SIZE": c.size}
		_, ok, err := conduits.Launched(func(k string) string { return env[k] })
		if !ok || !errors.Is(err, conduits.ErrBadArg) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("rank %q of %q: %v, %v; want an error with %q", c.rank, c.size, ok, err, c.want)
		}
	}
	if _, ok, err := conduits.Launched(func(string) string { return "" }); ok || err != nil {
		t.Errorf("no environment: %v, %v", ok, err)
	}
	env := map[string]string{"ARGON_RANK": "3", "ARGON_SIZE": "4", "ARGON_SEGFD": "5"}
	j, ok, err := conduits.Launched(func(k string) string { return env[k] })
	if !ok || err != nil || j.Rank != 3 || j.Size != 4 || j.Env("ARGON_SEGFD") != "5" || j.Env("ARGON_CONDUIT") != "" {
		t.Errorf("rank 3 of 4: %+v, %v, %v", j, ok, err)
	}
}

// variables are a process's environment, "A=1 B=2".
func variables(s string) func(string) string {
	m := map[string]string{}
	for f := range strings.FieldsSeq(s) {
		k, v, _ := strings.Cut(f, "=")
		m[k] = v
	}
	return func(k string) string { return m[k] }
}

// TestLaunchedElsewhere has processes that other launchers have started.
func TestLaunchedElsewhere(t *testing.T) {
	const (
		slurm = "SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=7 SLURM_NTASKS=7 SLURM_LOCALID=1 SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=4,3"
		ompi  = "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_RANK=2"
		pmi   = "PMI_RANK=1 PMI_SIZE=3 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=3"
		kube  = "JOB_COMPLETION_INDEX=6 ARGON_SIZE=8"
	)
	for _, c := range []struct {
		env                  string
		rank, size           int
		localRank, localSize string // "" for unknown
		conduit              string
		alone                bool   // without ARGON_RENDEZVOUS
		broken               string // also without ARGON_RENDEZVOUS
	}{
		{env: slurm, rank: 5, size: 7, localRank: "1", localSize: "3", alone: true},
		{env: ompi, rank: 2, size: 4, localRank: "0", localSize: "2", alone: true},
		{env: pmi, rank: 1, size: 3, localRank: "1", localSize: "3", alone: true},
		{env: kube, rank: 6, size: 8, broken: `ARGON_RANK=""`},
		{env: "PMIX_RANK=3 " + slurm, rank: 3, size: 7, localRank: "1", localSize: "3", alone: true},
		{env: "PMIX_RANK=3 ARGON_SIZE=4", rank: 3, size: 4, broken: `ARGON_RANK=""`},
		{env: "SLURM_PROCID=0 SLURM_NPROCS=2", rank: 0, size: 2, alone: true},
		{env: "SLURM_PROCID=0 SLURM_NTASKS=2 ARGON_SIZE=2", rank: 0, size: 2, broken: `ARGON_RANK=""`},

		// One inside of the other: Slurm's ranks are those of daemons.
		{env: slurm + " " + ompi, rank: 2, size: 4, localRank: "0", localSize: "2", alone: true},
		{env: slurm + " " + pmi, rank: 1, size: 3, localRank: "1", localSize: "3", alone: true},
		{env: slurm + " PMI_RANK=5 PMI_SIZE=7", rank: 5, size: 7, alone: true},

		// Slurm itself by its plugin for PMI-2.
		{env: slurm + " PMI_RANK=5 PMI_SIZE=7 PMI_JOBID=3.0 SLURM_JOB_ID=3 SLURM_STEP_ID=0", rank: 5, size: 7, localRank: "1", localSize: "3", alone: true},
		{env: kube + " ARGON_RANK=7 " + slurm, rank: 7, size: 8, conduit: "hybrid"},
		{env: "ARGON_RANK=0 ARGON_SIZE=1 " + ompi + " ARGON_CONDUIT=shm", rank: 0, size: 1, conduit: "shm"},
		{env: pmi + " ARGON_CONDUIT=udp", rank: 1, size: 3, localRank: "1", localSize: "3", conduit: "udp", alone: true},

		// A step's numbers count, and what may be the allocation's does not.
		{env: "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_NTASKS=64 SLURM_NTASKS_PER_NODE=32 SLURM_NNODES=2", rank: 1, size: 2, alone: true},
		{env: "SLURM_PROCID=1 SLURM_NTASKS=8 SLURM_NTASKS_PER_NODE=4 SLURM_NNODES=2 SLURM_LOCALID=1", rank: 1, size: 8, localRank: "1", localSize: "4", alone: true},
		{env: "SLURM_PROCID=1 SLURM_NTASKS=7 SLURM_NTASKS_PER_NODE=4 SLURM_NNODES=2 SLURM_LOCALID=1", rank: 1, size: 7, localRank: "1", alone: true},

		// Ranks per node.
		{env: "SLURM_PROCID=9 SLURM_NTASKS=10 SLURM_NODEID=3 SLURM_STEP_TASKS_PER_NODE=2,3(x2),2", rank: 9, size: 10, localSize: "2", alone: true},
		{env: "SLURM_PROCID=9 SLURM_NTASKS=10 SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=2,3(x2),2", rank: 9, size: 10, localSize: "3", alone: true},
		{env: "SLURM_PROCID=9 SLURM_NTASKS=10 SLURM_STEP_TASKS_PER_NODE=10", rank: 9, size: 10, localSize: "10", alone: true},
	} {
		conduit := c.conduit
		if conduit == "" {
			conduit = "hybrid"
		}
		j, ok, err := conduits.Launched(variables(c.env + " ARGON_RENDEZVOUS=a:1"))
		if !ok || err != nil {
			t.Errorf("%s: %v, %v", c.env, ok, err)
			continue
		}
		if j.Rank != c.rank || j.Size != c.size {
			t.Errorf("%s: rank %d of %d, want %d of %d", c.env, j.Rank, j.Size, c.rank, c.size)
		}
		for k, want := range map[string]string{
			"ARGON_RANK": fmt.Sprint(c.rank), "ARGON_SIZE": fmt.Sprint(c.size), "ARGON_CONDUIT": conduit,
			"ARGON_LOCAL_RANK": c.localRank, "ARGON_LOCAL_SIZE": c.localSize, "ARGON_RENDEZVOUS": "a:1",
		} {
			if v := j.Env(k); v != want {
				t.Errorf("%s: %s is %q, want %q", c.env, k, v, want)
			}
		}
		_, ok, err = conduits.Launched(variables(c.env))
		switch {
		case c.alone && (ok || err != nil):
			t.Errorf("%s, no rendezvous: %v, %v", c.env, ok, err)
		case c.broken != "" && (!ok || err == nil || !strings.Contains(err.Error(), c.broken)):
			t.Errorf("%s, no rendezvous: %v, %v; want an error with %s", c.env, ok, err, c.broken)
		}
	}
}

func TestLaunchedBroken(t *testing.T) {
	for _, c := range []struct {
		env  string
		want []string
	}{
		{"", []string{"ARGON_RENDEZVOUS=\"a:1\"", "ARGON_RANK", "SLURM_PROCID", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "JOB_COMPLETION_INDEX"}},
		{"JOB_COMPLETION_INDEX=3", []string{"Kubernetes", `ARGON_SIZE=""`, `JOB_COMPLETION_INDEX="3"`}},
		{"JOB_COMPLETION_INDEX=8 ARGON_SIZE=8", []string{`JOB_COMPLETION_INDEX="8"`, `ARGON_SIZE="8"`, "0 to 7"}},
		{"SLURM_PROCID=0", []string{"Slurm", `SLURM_STEP_NUM_TASKS=""`}},
		{"SLURM_PROCID=x SLURM_NTASKS=2", []string{`SLURM_PROCID="x"`, `SLURM_NTASKS="2"`}},
		{"SLURM_PROCID=-1 SLURM_NTASKS=2", []string{`SLURM_PROCID="-1"`}},
		{"SLURM_PROCID=2 SLURM_NTASKS=2", []string{`SLURM_PROCID="2"`, "0 to 1"}},
		{"SLURM_PROCID=0 SLURM_NTASKS=0", []string{`SLURM_NTASKS="0"`}},
		{"SLURM_PROCID=0 SLURM_NTASKS=70000", []string{`SLURM_NTASKS="70000"`, "65536"}},
		{"SLURM_PROCID=0 SLURM_NTASKS=2 ARGON_SIZE=3", []string{`SLURM_NTASKS="2"`, `ARGON_SIZE="3"`}},
		{"PMI_RANK=0 PMI_SIZE=2.5", []string{"PMI", `PMI_SIZE="2.5"`}},
		{"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=1", []string{`OMPI_COMM_WORLD_RANK="0"`, `PMIX_RANK="1"`}},
		{"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=3", []string{`OMPI_COMM_WORLD_LOCAL_SIZE="3"`}},
		{"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=0", []string{`OMPI_COMM_WORLD_LOCAL_SIZE="0"`}},
		{
			"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=2",
			[]string{`OMPI_COMM_WORLD_LOCAL_RANK="2"`, `OMPI_COMM_WORLD_LOCAL_SIZE="2"`},
		},
		{"PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=2", []string{`MPI_LOCALRANKID="2"`}},
		{"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_LOCALID=here", []string{`SLURM_LOCALID="here"`}},
		{"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_TASKS_PER_NODE=1(x2", []string{`SLURM_STEP_TASKS_PER_NODE="1(x2"`}},
		{"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_TASKS_PER_NODE=1(x2)", []string{`SLURM_STEP_TASKS_PER_NODE="1(x2)"`}}, // no node
		{"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_TASKS_PER_NODE=1(x2) SLURM_NODEID=2", []string{`SLURM_STEP_TASKS_PER_NODE="1(x2)"`}},
		{"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_TASKS_PER_NODE=1,,1 SLURM_NODEID=0", []string{`SLURM_STEP_TASKS_PER_NODE="1,,1"`}},
		{"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_TASKS_PER_NODE=5 SLURM_NODEID=0", []string{`SLURM_STEP_TASKS_PER_NODE="5"`}},
		{"ARGON_RANK=0 ARGON_SIZE=x SLURM_PROCID=0 SLURM_NTASKS=2", []string{`ARGON_SIZE="x"`}},
		{"ARGON_SIZE=3", []string{`ARGON_SIZE`, `ARGON_RANK=""`}},
	} {
		_, ok, err := conduits.Launched(variables(c.env + " ARGON_RENDEZVOUS=a:1"))
		if !ok || !errors.Is(err, conduits.ErrBadArg) {
			t.Errorf("%s: %v, %v", c.env, ok, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v; want %s", c.env, err, w)
			}
		}
	}
}
