package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
)

// raw is a program of package am: what package gas does for others it does itself, or
// leaves undone. It returns the exit status.
func raw() int {
	fail := func(err error) int {
		fmt.Fprintf(os.Stderr, "argon: %v\n", err)
		return 1
	}
	job, launched, err := conduits.Launched(os.Getenv)
	if err != nil {
		return fail(err)
	}
	name := os.Getenv("ARGON_CONDUIT")
	if name == "" {
		name = "shm"
	}
	cd, err := conduits.Lookup(name)
	if err != nil {
		return fail(err)
	}
	if launched {
		ep, err := cd.Join(job, conduits.Config{})
		if err != nil {
			return fail(err)
		}
		return rawRank(ep)
	}
	n, err := strconv.Atoi(os.Getenv("ARGON_RANKS"))
	if err != nil {
		return fail(err)
	}
	eps, err := cd.Local(n, conduits.Config{})
	if err != nil {
		return fail(err)
	}
	var status atomic.Int32
	conduits.Run(eps, func(i int) {
		if s := rawRank(eps[i]); s != 0 {
			status.Store(int32(s))
		}
	})
	return int(status.Load())
}

// rawRank runs one rank.
func rawRank(ep conduits.Endpoint) int {
	b := barrier.New()
	e, err := am.Attach(ep, am.Config{Runtime: b.Handlers()})
	if err == nil {
		err = b.Bind(e)
	}
	if err == nil {
		err = b.Barrier(0, 0)
	}
	if err == nil {
		switch mine := ep.Rank() == 1; {
		case os.Args[2] == "all", os.Args[2] == "one" && mine:
			return 0 // without Close
		case os.Args[2] == "exit" && mine:
			code, _ := strconv.Atoi(os.Args[3])
			err = e.Exit(code)
		default:
			err = e.Wait(nil, func() bool { return false })
		}
	}
	_ = ep.Close()
	var exit *conduits.ExitError
	if errors.As(err, &exit) {
		return exit.Code
	}
	fmt.Fprintf(os.Stderr, "argon: rank %d: %v\n", ep.Rank(), err)
	return 121
}
