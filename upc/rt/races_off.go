//go:build !upcraces

package rt

// checked: the program is not built to look for data races.
const checked = false
