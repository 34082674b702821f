// Package pmi is the part of PMI-1's wire protocol by which the processes of a job pass one
// value on to each other: each has a socket to its process manager, which keeps a space of
// keys and values for the job and a barrier (P. Balaji et al., PMI: A Scalable Parallel
// Process-Management Interface for Extreme-Scale Systems, EuroMPI 2010; the messages are
// those of MPICH's src/pmi/maint/pmi-1.1.txt).
//
// A message is a line of words NAME=VALUE with spaces between, the first of which is cmd.
// Hydra (the mpiexec of MPICH and Intel MPI) and Flux speak it, and so does Slurm's plugin for
// PMI-2 (srun --mpi=pmi2), which speaks the version that a process begins with. PMIx has no
// wire protocol that is the same in all its versions, and is not here: package rendezvous has
// ranks that it has started on one host meet by a file.
//
// The value is in the clear for the daemons of the process manager and the connections
// between them.
package pmi
