package conduits

// Neighbourly is implemented by endpoints of jobs that may have several
// neighbourhoods, and know them: layers above that work on two levels, inside
// neighbourhoods and between them, need it. The ranks of a neighbourhood are
// consecutive.
type Neighbourly interface {
	// Neighbourhoods is the first rank of each neighbourhood, in ascending order,
	// so that the first entry is 0; nil if the endpoint does not know after all.
	// Ranks of a neighbourhood have each other's Views and System. Shared and
	// read-only; legal before Attach.
	Neighbourhoods() []int
}

// Neighbourhoods is what ep says if it is Neighbourly, and nil if it does not know.
func Neighbourhoods(ep Endpoint) []int {
	if n, ok := ep.(Neighbourly); ok {
		return n.Neighbourhoods()
	}
	return nil
}
