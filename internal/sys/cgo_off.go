//go:build !cgo

package sys

const withC = false
