// Package rendezvous is the service where the ranks of a job that spans
// processes and hosts find each other, and learn which of them has failed.
package rendezvous
