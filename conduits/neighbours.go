package conduits

// Neighbourly is implemented by endpoints of jobs that may have several
// neighbourhoods, and know them: layers above that work on two levels, inside
// neighbourhoods and between them, need it. The ranks of a neighbourhood are
// consecutive.
type Neighbourly interface {
	// Neighbourhoods is the first rank of each neighbourhood, in ascending order,
	// so that the first entry is 0. Shared and read-only; legal before Attach.
	Neighbourhoods() []int
}
