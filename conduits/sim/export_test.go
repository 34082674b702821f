package sim

// For tests of package sim_test.
var (
	RandomPlan = randomPlan
	Seeds      = seeds
)
