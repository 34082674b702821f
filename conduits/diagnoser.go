package conduits

// Diagnoser is implemented by endpoints that know more about why a job may hang
// than Stats and Waiting say. It is optional.
type Diagnoser interface {
	// Diagnosis is a few words for a line about this rank, or "". It may be called
	// by any goroutine at any time.
	Diagnosis() string
}
