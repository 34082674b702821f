package conduits

// Abilities are those that an Endpoint may have beyond its own methods: all of the optional
// interfaces that there are, nil for those that it lacks. [As] asks for one.
type Abilities struct {
	Laned       Laned
	Deliverer   Deliverer
	Diagnoser   Diagnoser
	Neighbourly Neighbourly
	Runner      Runner
	Card        Card
}

// Offer makes Abilities. A wrapper makes its own by it, so that it does not compile when
// there is an ability that it neither has nor leaves out.
func Offer(l Laned, d Deliverer, g Diagnoser, n Neighbourly, r Runner, c Card) Abilities {
	return Abilities{Laned: l, Deliverer: d, Diagnoser: g, Neighbourly: n, Runner: r, Card: c}
}

// Wrapping is an Endpoint on top of others. What those can do decides what it can, so that it
// is not to be seen from its methods.
type Wrapping interface {
	Endpoint
	// Abilities are those of the endpoint: the same at every call.
	Abilities() Abilities
}

// As is ep as a C, an interface of Abilities, if it has that ability. No layer asks for one
// in another way.
func As[C any](ep Endpoint) (c C, ok bool) {
	if w, wraps := ep.(Wrapping); wraps {
		return pick[C](w.Abilities())
	}
	c, ok = ep.(C)
	return c, ok
}

// pick is the ability C of a.
func pick[C any](a Abilities) (c C, ok bool) {
	switch p := any(&c).(type) {
	case *Laned:
		*p, ok = a.Laned, a.Laned != nil
	case *Deliverer:
		*p, ok = a.Deliverer, a.Deliverer != nil
	case *Diagnoser:
		*p, ok = a.Diagnoser, a.Diagnoser != nil
	case *Neighbourly:
		*p, ok = a.Neighbourly, a.Neighbourly != nil
	case *Runner:
		*p, ok = a.Runner, a.Runner != nil
	case *Card:
		*p, ok = a.Card, a.Card != nil
	}
	return c, ok
}
