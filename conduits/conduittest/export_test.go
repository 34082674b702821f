package conduittest

// FindFailure is the state machine's search without a test to fail.
var FindFailure = findFailure

// RaceEnabled says whether the race detector is on.
const RaceEnabled = raceEnabled
