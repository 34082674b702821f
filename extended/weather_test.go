package extended_test

import (
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/lab/faultproxy"
	"github.com/argon-go/argon/internal/rendezvous"
)

// storm is udp on real sockets with a proxy between them that loses, repeats,
// reorders, damages and delays datagrams.
var storm = world{"storm", func(t testing.TB, size int, seed uint64) []conduits.Endpoint {
	key := jobkey.New()
	proxy, err := faultproxy.New(faultproxy.Config{Size: size, Seed: seed, Faults: faultproxy.Storm()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s := proxy.Stats(faultproxy.All, faultproxy.All); s.Dropped == 0 || s.Duplicated == 0 {
			t.Errorf("the storm has done nothing: %+v", s)
		}
		proxy.Close()
	})
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := rendezvous.Serve(l, rendezvous.ServerConfig{Key: key, Size: size, Patience: time.Minute, Rewrite: proxy.Rewrite})
	if err != nil {
		l.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	ends := make([]conduits.Endpoint, size)
	errs := make([]error, size)
	var wg sync.WaitGroup
	for rank := range ends {
		env := map[string]string{
			"ARGON_RANK": strconv.Itoa(rank), "ARGON_SIZE": strconv.Itoa(size), "ARGON_CONDUIT": "udp", "ARGON_DEADTIME": "30s",
			"ARGON_RENDEZVOUS": server.Addr().String(), "ARGON_RENDEZVOUS_SERVE": "0", jobenv.JobKey: key.Reveal(),
		}
		wg.Go(func() {
			var e *udp.Endpoint
			job := conduits.Job{Rank: rank, Size: size, Env: func(k string) string { return env[k] }}
			if e, errs[rank] = udp.Open(job, conduits.Config{Credits: 4}); errs[rank] == nil {
				ends[rank] = &stormy{e, ends}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return ends
}}

// stormy is an endpoint of a job whose ranks are all in this process: Wake reaches
// them all.
type stormy struct {
	*udp.Endpoint
	all []conduits.Endpoint
}

func (e *stormy) Wake(rank int) { e.all[rank].(*stormy).Endpoint.Wake(rank) }

// TestKindsInStorm runs random programs by every strategy in the worst of weathers,
// where requests to owners and their answers come late, twice and in any order.
func TestKindsInStorm(t *testing.T) {
	for s := firehose.Adaptive; s <= firehose.AlwaysRegister; s++ {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			steps := 60
			switch {
			case conc.Race:
				t.Skip("the race detector does not see that sockets order what ranks tell each other beside them")
			case testing.Short():
				steps = 15
			}
			runKinds(t, storm, 3, uint64(s)+1, steps, extended.Config{Strategy: s, BounceMax: 1500, OnceMin: 9000})
		})
	}
}
