package conduittest

var machineChecks = []check{}
