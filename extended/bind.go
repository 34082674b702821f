package extended

import "github.com/argon-go/argon/am"

var (
	_ am.Completer = (*Endpoint)(nil)
	_ am.Exposer   = (*Endpoint)(nil)
)

// Handlers is what am.Attach has to know: nothing, as all that this package does
// goes through the conduit's RMA unit; with Config.Firehose, its handlers and
// those that move data between ranks without it. Indices 32 to 63 are kept for
// this package.
func (x *Endpoint) Handlers() []am.Entry {
	if x.exposed == nil {
		return nil
	}
	return x.exposed.Handlers()
}

// Bind connects x with the attached endpoint whose am.Config named x as its
// Completer. Once, before any other method.
func (x *Endpoint) Bind(e *am.Endpoint) {
	if x.exposed != nil {
		x.exposed.Bind(e)
	}
	x.bind(e.Conduit(), e)
}
