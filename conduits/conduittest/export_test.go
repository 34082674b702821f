package conduittest

// FindFailure is the state machine's search without a test to fail.
var FindFailure = findFailure
