package extended

// Defaults of Config.
const (
	DefaultBounceMax = 1024
	DefaultOnceMin   = 4 << 20
)
