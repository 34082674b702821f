package conduittest

var gasChecks []check
