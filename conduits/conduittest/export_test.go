package conduittest

// FindFailure is the state machine's search without a test to fail.
func FindFailure(open Open, seed uint64, kind Program) string {
	text, _ := findFailure(open, seed, kind, patience{wait: *flagPatience})
	return text
}

// RaceEnabled says whether the race detector is on.
const RaceEnabled = raceEnabled
