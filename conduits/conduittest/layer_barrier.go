package conduittest

var barrierChecks []check
