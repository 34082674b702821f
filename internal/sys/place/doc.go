// Package place divides the processors of a host among the ranks there, so that no two
// ranks share one while there are enough.
//
// [Read] learns from sysfs which processors are threads of one core, and which share a
// cache or a memory node. [Divide] makes the sets of the ranks; it is a pure function of what
// was read, of how many ranks there are, and of how often other jobs have taken each
// processor. A [Claim] holds what a job has taken: one socket for each processor, in the abstract
// namespace (unix(7)), which the kernel removes with its holder. No directory and no right is needed
// for it, nothing is left behind, and all users of a network namespace see each other's.
package place
