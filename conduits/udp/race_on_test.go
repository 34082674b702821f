//go:build race

package udp_test

const racing = true
