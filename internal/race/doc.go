// Package race says whether the race detector is on. It makes programs several
// times as slow and their frames larger, and finds stores that race on purpose.
package race
