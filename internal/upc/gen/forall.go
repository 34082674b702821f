package gen

import "github.com/argon-go/argon/internal/upc/front"

// localLoop is an upc_forall loop whose iterations visit elements of this thread.
type localLoop struct{}

// place is a shared place in the loop as a private one, if it is this thread's.
func (l *localLoop) place(g *gen, n *front.Node) (place, bool) { return place{}, false }
