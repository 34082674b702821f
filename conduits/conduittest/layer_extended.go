package conduittest

var extendedChecks []check
