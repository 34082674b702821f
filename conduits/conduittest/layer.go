package conduittest

var layerChecks = []check{}
