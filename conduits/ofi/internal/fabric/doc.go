//go:build !ofi || !cgo

// Package fabric is argon's use of libfabric. It is empty in a build without the tag ofi.
package fabric
