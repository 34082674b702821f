// Package shmofi registers the conduit hybrid-ofi, which is made of shared memory inside a
// host (package shm) and libfabric between hosts (package ofi): programs import it for
// that. In builds without the tag ofi its error tells what to install and how to build.
package shmofi

// Name is the conduit's name.
const Name = "hybrid-ofi"
