// Package providers chooses among libfabric's providers for a job, and tells why not
// the others. [List] asks the library (fi_getinfo) what the machine has, in a build with
// the tag ofi; [Choose] puts that in order, in plain Go that needs neither the library nor
// the tag.
//
// A provider drives a kind of network: verbs;ofi_rxm InfiniBand and RoCE, cxi Slingshot,
// efa that of Amazon, psm3 and opx Omni-Path. net and tcp;ofi_rxm drive any network by
// TCP: they are where the conduit is tested, and argon's own udp is faster there. Providers
// that lose memory accesses, crash, or do what argon's shared memory does better are refused
// by name; see Refusal.
//
// Functions may be called by several goroutines at once.
package providers
