package jobenv_test

import (
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/job/jobenv"
)

// TestJobName: which of many variables names the job.
func TestJobName(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"", ""},
		{"ARGON_JOBID=7 SLURM_PROCID=0 SLURM_JOB_ID=5 SLURM_STEP_ID=0", "argon 7"},
		{"SLURM_PROCID=0 SLURM_JOB_ID=5 SLURM_STEP_ID=2", "Slurm 5.2"},
		{"SLURM_PROCID=0 SLURM_JOB_ID=5 SLURM_STEP_ID=2 SLURM_HET_SIZE=2", ""},
		{"SLURM_PROCID=0 SLURM_JOB_ID=5", ""},
		// mpirun has started daemons as a step of Slurm on some hosts only.
		{"SLURM_PROCID=0 SLURM_JOB_ID=5 SLURM_STEP_ID=0 OMPI_COMM_WORLD_RANK=3", ""},
		{"SLURM_PROCID=0 SLURM_JOB_ID=5 SLURM_STEP_ID=0 OMPI_COMM_WORLD_RANK=3 PMIX_NAMESPACE=n.1", "PMIx n.1"},
		{"SLURM_PROCID=0 SLURM_JOB_ID=5 SLURM_STEP_ID=0 PMI_RANK=3", ""},
		{"PMI_RANK=3 PMI_JOBID=9.1", "PMI 9.1"},
		{"PMIX_RANK=3 PMIX_NAMESPACE=slurm.pmix.9.1 SLURM_PROCID=3", "PMIx slurm.pmix.9.1"},
	} {
		m := map[string]string{}
		for f := range strings.FieldsSeq(c.env) {
			k, v, _ := strings.Cut(f, "=")
			m[k] = v
		}
		if got := jobenv.JobName(func(k string) string { return m[k] }); got != c.want {
			t.Errorf("%s: %q, want %q", c.env, got, c.want)
		}
	}
}

// TestFindStarter: the launcher of a process, and whether it has started others.
func TestFindStarter(t *testing.T) {
	for _, c := range []struct {
		env     string
		want    jobenv.Starter
		started bool
	}{
		{"", jobenv.Starter{}, false},
		{"JOB_COMPLETION_INDEX=3", jobenv.Starter{}, false},
		{"SLURM_PROCID=0 SLURM_NTASKS=8", jobenv.Starter{Name: "Slurm", Said: "SLURM_PROCID=0, SLURM_NTASKS=8"}, true},
		{"SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=8 SLURM_NTASKS=9", jobenv.Starter{Name: "Slurm", Said: "SLURM_PROCID=0, SLURM_STEP_NUM_TASKS=8", Several: true}, true},
		{"SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 PMIX_RANK=0", jobenv.Starter{Name: "Slurm", Said: "SLURM_PROCID=0, SLURM_STEP_NUM_TASKS=1"}, true},
		{"PMIX_RANK=1", jobenv.Starter{Name: "PMIx", Said: "PMIX_RANK=1", Several: true}, true},
		{"PMI_RANK=0 PMI_SIZE=2 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1", jobenv.Starter{Name: "PMI", Said: "PMI_RANK=0, PMI_SIZE=2", Several: true}, true},
		{"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 PMIX_RANK=0", jobenv.Starter{Name: "Open MPI", Said: "OMPI_COMM_WORLD_RANK=0, OMPI_COMM_WORLD_SIZE=1"}, true},
	} {
		m := map[string]string{}
		for f := range strings.FieldsSeq(c.env) {
			k, v, _ := strings.Cut(f, "=")
			m[k] = v
		}
		if got, ok := jobenv.FindStarter(func(k string) string { return m[k] }); got != c.want || ok != c.started {
			t.Errorf("%s: %+v, %v; want %+v, %v", c.env, got, ok, c.want, c.started)
		}
	}
}

// TestManaged: which processes learn from a process manager where they meet; they have a place
// without a rendezvous.
func TestManaged(t *testing.T) {
	const pmi = "PMI_RANK=0 PMI_SIZE=2 PMI_FD=5 "
	const step = "SLURM_PROCID=1 PMIX_RANK=1 PMIX_NAMESPACE=slurm.pmix.7.0 PMIX_SERVER_TMPDIR=/t SLURM_STEP_NUM_TASKS=2 SLURM_JOB_ID=7 "
	const ompi = "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=0 PMIX_NAMESPACE=7 PMIX_SERVER_TMPDIR=/t "
	for _, c := range []struct {
		env  string
		want bool
	}{
		{pmi, true},
		{pmi + "ARGON_ALONE=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1", true},
		{pmi + "ARGON_ALONE=1", false},
		{pmi + "ARGON_RENDEZVOUS=a:1", false},
		{pmi + "ARGON_JOBID=7", false}, // a rank of gasrun's
		{pmi + "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2", false},
		{"PMI_RANK=0 PMI_SIZE=1 PMI_FD=5", false},
		{"PMI_RANK=0 PMI_SIZE=2", false},
		{"PMI_FD=5 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2", false},
		{ompi + "OMPI_COMM_WORLD_LOCAL_SIZE=2", true},
		{ompi + "OMPI_COMM_WORLD_LOCAL_SIZE=1", false}, // on two hosts
		{ompi + "OMPI_COMM_WORLD_LOCAL_SIZE=2 ARGON_ALONE=1", false},
		{ompi, false},
		{"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2", false},
		{step + "SLURM_STEP_ID=0 SLURM_STEP_TASKS_PER_NODE=2", true},
		{step + "SLURM_STEP_ID=0 SLURM_STEP_TASKS_PER_NODE=1(x2) SLURM_NODEID=1", false},
		{step + "SLURM_STEP_ID=1 SLURM_STEP_TASKS_PER_NODE=2", false}, // plain srun in a shell of step 0
		{step + "SLURM_STEP_ID=0 SLURM_STEP_TASKS_PER_NODE=2 MPI_LOCALNRANKS=2 PMI_RANK=1 PMI_SIZE=2", false},
	} {
		m := map[string]string{}
		for f := range strings.FieldsSeq(c.env) {
			k, v, _ := strings.Cut(f, "=")
			m[k] = v
		}
		env := func(k string) string { return m[k] }
		if got := jobenv.Managed(env); got != c.want {
			t.Errorf("%s: %v", c.env, got)
		}
		p, ok, err := jobenv.FindPlace(env)
		if m[jobenv.Rendezvous] == "" && (ok != c.want || err != nil || ok && (p.Size != 2 || p.Env(jobenv.Conduit) != "hybrid")) {
			t.Errorf("%s: %+v, %v, %v", c.env, p, ok, err)
		}
	}
}
