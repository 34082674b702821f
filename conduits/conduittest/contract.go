package conduittest

var contractChecks = []check{}
