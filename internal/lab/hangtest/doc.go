// Package hangtest starts jobs that hang, each in another way, and looks whether the report
// names the cause.
package hangtest
