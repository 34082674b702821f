// Program gasprog does what its first argument says; see the tests of gasrun.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
)

func main() {
	if os.Args[1] == "early" && os.Getenv("ARGON_RANK") == "1" {
		return
	}
	if os.Args[1] == "processors" {
		fmt.Println(sys.Processors(), "processors")
		return
	}
	if os.Args[1] == "raw" {
		os.Exit(raw())
	}
	gas.Exit(func() error {
		err := run()
		if err != nil && os.Args[1] == "linger" && os.Getenv("ARGON_RANK") == "1" {
			time.Sleep(time.Hour)
		}
		return err
	}())
}

func run() error {
	return gas.Run(gas.Config{}, func(n *gas.Node) error {
		mine := n.Rank() == 1
		if mine && (os.Args[1] == "error" || os.Args[1] == "linger") {
			return errors.New("out of luck")
		}
		if mine && os.Args[1] == "ugly" { // for terminals
			return errors.New("out of luck\nin \x1b[2J\x1b]0;owned\a lines" + strings.Repeat("x", 1<<20) + "\nthe \x1b[31mend")
		}
		if os.Args[1] == "end" {
			return exit(n)
		}
		if mine && os.Args[1] == "status42" {
			return errs.WithStatus(errors.New("out of luck"), 42)
		}
		if len(os.Args) > 2 && os.Args[2] == "toil" && n.Rank() == 2 {
			for { // without a poll
				time.Sleep(time.Second)
			}
		}
		if os.Args[1] == "polite" || os.Args[1] == "ugly" { // learns of the failure before it is told to end
			signal.Ignore(syscall.SIGTERM)
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if os.Args[1] == "place" {
			fmt.Printf("rank %d of %d\n", n.Rank(), n.Size())
			return n.Barrier()
		}
		if os.Args[1] == "nest" || os.Args[1] == "nest-early" {
			if err := nest(); err != nil {
				return err
			}
			return n.Barrier()
		}
		if mine && os.Args[1] == "deaf" {
			deaf()
		}
		fmt.Println("ready")
		switch {
		case os.Args[1] == "files": // that a program run by the rank has open
			cmd := exec.Command("ls", "-l", "/proc/self/fd")
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Run(); err != nil {
				return err
			}
		case os.Args[1] == "wait": // for ever, for a rank that does not come
			if n.Rank() == 0 {
				time.Sleep(time.Hour)
			}
		case os.Args[1] == "use":
			return use(n)
		case os.Args[1] == "eat" && mine: // more memory than a group has
			hold := make([]byte, 1<<30)
			for i := range hold {
				hold[i] = 1
			}
			return fmt.Errorf("all %d bytes are there", len(hold))
		case !mine || os.Args[1] == "good":
		case os.Args[1] == "exit":
			os.Exit(0)
		case os.Args[1] == "exit6":
			os.Exit(6)
		case os.Args[1] == "panic":
			panic("boom")
		case os.Args[1] == "crash":
			return crash(n, os.Args[2])
		case os.Args[1] == "kill", os.Args[1] == "polite":
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return n.Barrier()
	})
}

// use has each rank write to another one's memory, which is to arrive, and says so.
func use(n *gas.Node) error {
	const words = 64 // of a rank, so that the smallest segment has room
	a, err := gas.NewArray[int](n, words*n.Size(), words)
	if err != nil {
		return err
	}
	next := (n.Rank() + 1) % n.Size()
	for i := range words {
		if err := a.Put(n, next*words+i, n.Rank()); err != nil {
			return err
		}
	}
	if err := n.Barrier(); err != nil {
		return err
	}
	want := (n.Rank() + n.Size() - 1) % n.Size()
	for i := range words {
		if got, err := a.Get(n, n.Rank()*words+i); err != nil || got != want {
			return fmt.Errorf("word %d is %d, want %d: %v", i, got, want, err)
		}
	}
	sum, err := gas.AllReduce(n, n.Rank(), gas.Sum)
	if err != nil || sum != n.Size()*(n.Size()-1)/2 {
		return fmt.Errorf("the sum is %d: %v", sum, err)
	}
	fmt.Println("used")
	return n.Barrier()
}

// crasher runs broken on another rank.
var crasher = gas.RegisterCall("gasprog.crasher", func(_ *gas.Node, how string) struct{} {
	broken(how)
	return struct{}{}
})

// crash ends the rank, or rank 0, in the way that how says, in function broken if there
// is a place.
func crash(n *gas.Node, how string) error {
	where, how, _ := strings.Cut(how, " ")
	switch where {
	case "call":
		_, err := crasher.Call(n, 0, how)
		return err
	case "handler":
		if err := crasher.Send(n, 0, how); err != nil {
			return err
		}
	case "go":
		go broken(how)
		time.Sleep(time.Hour)
	case "return":
		return fmt.Errorf("several lines:\n%w", errors.Join(errors.New("one"), errors.New("two")))
	case "log":
		log.Fatal("several\nlines")
	default:
		broken(how)
	}
	return n.Barrier()
}

//go:noinline
func broken(how string) {
	switch how {
	case "nil":
		var p *int
		*p = 1
	case "lines":
		panic("several\nlines")
	case "again":
		defer func() { panic(fmt.Sprint("again: ", recover())) }()
		panic(errors.New("first"))
	case "library":
		strings.Repeat("x", -len(how))
	case "fatal":
		var mu sync.Mutex
		mu.Unlock()
	case "goexit":
		runtime.Goexit()
	case "bus": // beyond the end of a mapped file
		f, err := os.CreateTemp("", "")
		if err != nil {
			panic(err)
		}
		os.Remove(f.Name())
		b, err := syscall.Mmap(int(f.Fd()), 0, os.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		if err != nil {
			panic(err)
		}
		b[0] = 1
	case "abort":
		if err := syscall.Kill(os.Getpid(), syscall.SIGABRT); err != nil {
			panic(err)
		}
		select {}
	}
}

// early is the environment before the process has taken its rank.
var early = os.Environ()

// nest runs the command that follows the first argument.
func nest() error {
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if os.Args[1] == "nest-early" {
		cmd.Env = early
	}
	return cmd.Run()
}

// ender ends the job from a called function.
var ender = gas.RegisterCall("gasprog.ender", func(n *gas.Node, code int) struct{} {
	_ = n.Exit(code)
	return struct{}{}
})

// exit has rank 1 end the job with the status in argument 3, in the way that
// argument 2 says.
func exit(n *gas.Node) error {
	code, err := strconv.Atoi(os.Args[3])
	if err != nil {
		return err
	}
	compute := func() error {
		time.Sleep(time.Hour)
		return nil
	}
	wait := func() error { return n.Wait(func() bool { return false }) }
	switch how, rank := os.Args[2], n.Rank(); {
	case how == "main" && rank == 1, how == "toil" && rank == 1, how == "both" && rank > 0:
		return n.Exit(code + rank - 1)
	case how == "leave" && rank == 1: // without a word to the launcher
		_ = n.Exit(code)
		os.Exit(0)
	case how == "handler" && rank == 0:
		_, err := ender.Call(n, 1, code)
		return err
	case how == "lost" && rank == 1:
		_ = n.Exit(code)
		return compute()
	case how == "lost", how == "toil" && rank == 2:
		return compute()
	case how == "handler":
		return wait()
	}
	return n.Barrier()
}

// deaf stops polling. It is ready for the question where it is as soon as a rank
// may ask.
//
//go:noinline
func deaf() {
	fmt.Println("ready")
	time.Sleep(time.Hour)
}
