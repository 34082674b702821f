//go:build !race

package hybrid_test

const racing = false
