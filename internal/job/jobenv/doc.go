// Package jobenv names the variables by which a launcher speaks to the processes of its job, in one
// table: the names of the environment variables by which a process learns its
// place, what other launchers (Slurm, PMI, Open MPI, Kubernetes) say of it in
// theirs, exit statuses, how sizes are written, and how many ranks there may be.
//
// A variable that only one package reads has its constant there. Package env says
// of all variables what they mean.
package jobenv
