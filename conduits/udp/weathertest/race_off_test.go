//go:build !race

package weathertest

const racing = false
