// Package jobkey is the secret of a job: the [Key] from which ranks, launcher and
// rendezvous derive what they prove themselves by and seal datagrams with. It makes
// keys, reads them from a file or the environment, and hands them to processes as a
// file without a name. What is derived from a key is each user's choice.
package jobkey
