//go:build upcraces

package rt

// checked: programs look for their own data races (see detector).
const checked = true
