//go:build !race

package sim_test

const crowd = 1
