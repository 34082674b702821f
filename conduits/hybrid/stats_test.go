package hybrid

import (
	"reflect"
	"testing"

	"github.com/argon-go/argon/conduits"
)

type nearCounts struct{ conduits.NearEndpoint }

type farCounts struct{ conduits.FarEndpoint }

func (nearCounts) Stats(s *conduits.Stats) { fillCounts(s, 1000) }
func (farCounts) Stats(s *conduits.Stats)  { fillCounts(s, 1) }

// fillCounts has every counter of s, and of one peer, be a multiple of unit, each another one.
func fillCounts(s *conduits.Stats, unit uint64) {
	k := uint64(0)
	fill := func(v reflect.Value) {
		for i := range v.NumField() {
			k++
			switch f := v.Field(i); f.Kind() {
			case reflect.Uint64:
				f.SetUint(k * unit)
			case reflect.Int:
				f.SetInt(int64(k * unit))
			case reflect.Array:
				for c := range f.Len() {
					f.Index(c).SetUint((k + uint64(c)*100) * unit)
				}
			}
		}
	}
	peers := s.Peers
	*s = conduits.Stats{}
	fill(reflect.ValueOf(s).Elem())
	if peers != nil {
		p := conduits.PeerStats{}
		fill(reflect.ValueOf(&p).Elem())
		p.Rank = 7
		s.Peers = append(peers[:0], p)
	}
}

// TestStats: counters of an endpoint are the sums of those of its parts. Callers sleep in near's waits, and
// only near reaches private memory of others.
func TestStats(t *testing.T) {
	own := map[string]bool{"Parks": true, "SystemCalls": true, "Asked": true}
	for _, peers := range [][]conduits.PeerStats{nil, {}} {
		got, want := conduits.Stats{Peers: peers}, conduits.Stats{Peers: peers}
		(&Endpoint{near: nearCounts{}, far: farCounts{}}).Stats(&got)
		fillCounts(&want, 1001)
		near := conduits.Stats{}
		fillCounts(&near, 1000)
		for name := range own {
			reflect.ValueOf(&want).Elem().FieldByName(name).Set(reflect.ValueOf(near).FieldByName(name))
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}
