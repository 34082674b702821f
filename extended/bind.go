package extended

import "github.com/argon-go/argon/am"

var _ am.Completer = (*Endpoint)(nil)

// Handlers is what am.Attach has to know: nothing at present, for all that this
// package does goes through the conduit's RMA unit. Indices 32 to 63 are kept
// for it.
func (x *Endpoint) Handlers() []am.Entry { return nil }

// Bind connects x with the attached endpoint whose am.Config named x as its
// Completer. Once, before any other method.
func (x *Endpoint) Bind(e *am.Endpoint) { x.bind(e.Conduit(), e) }
