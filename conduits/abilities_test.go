package conduits

import (
	"reflect"
	"testing"
)

// everything has all abilities by its methods.
type everything struct {
	Endpoint
	Laned
	Deliverer
	Diagnoser
	Neighbourly
	Runner
	Card
}

// wrapping is everything by its methods, too, and has what it says.
type wrapping struct {
	everything
	a Abilities
}

func (w wrapping) Abilities() Abilities { return w.a }

// asked is which abilities As finds, by their order in Abilities.
func asked(ep Endpoint) []bool {
	_, l := As[Laned](ep)
	_, d := As[Deliverer](ep)
	_, g := As[Diagnoser](ep)
	_, n := As[Neighbourly](ep)
	_, r := As[Runner](ep)
	_, c := As[Card](ep)
	return []bool{l, d, g, n, r, c}
}

// TestAbilities: As finds each ability of a wrapper that it offers, and no other one, although
// it has the methods of all, and those of other endpoints by their methods. The contract stays small.
func TestAbilities(t *testing.T) {
	all := everything{}
	kinds := reflect.TypeFor[Abilities]()
	if n := kinds.NumField(); n != len(asked(all)) || n > 6 {
		t.Fatalf("%d abilities, of which %d are asked for here; 6 at most", n, len(asked(all)))
	}
	if n := reflect.TypeFor[Endpoint]().NumMethod(); n > 36 {
		t.Errorf("an Endpoint has %d methods; 36 at most", n)
	}
	for i, ok := range asked(all) {
		if !ok {
			t.Errorf("an endpoint with its methods is no %v", kinds.Field(i).Type)
		}
		w := wrapping{}
		reflect.ValueOf(&w.a).Elem().Field(i).Set(reflect.ValueOf(all))
		for k, ok := range asked(w) {
			if ok != (k == i) {
				t.Errorf("a wrapper that offers %v alone: %v is %v", kinds.Field(i).Type, kinds.Field(k).Type, ok)
			}
		}
	}
}
