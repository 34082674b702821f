//go:build !ofi || !cgo

package main

import "github.com/argon-go/argon/conduits/ofi/providers"

// bareBuilt reports whether there are references of bare libfabric.
const bareBuilt = false

type bare struct{}

func (*bare) close() {}

func (*job) openBare() (string, error) { return "", providers.NotBuilt() }

func (*job) connectBare(string) error { return providers.NotBuilt() }

func (*job) bareRun(uint32, int, int) error { return providers.NotBuilt() }

func (*job) bareDone() error { return providers.NotBuilt() }

func (*job) bareAnswer(uint32, uint64, int) error { return providers.NotBuilt() }
