//go:build !ofi || !cgo

package providers

// Built reports whether this build knows the library.
const Built = false

// List is [NotBuilt].
func List() ([]Provider, error) { return nil, NotBuilt() }

// Library is empty: this build knows none.
func Library() string { return "" }
