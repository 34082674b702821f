// Package browser tests the page of gasrun -monitor in Chromium. It is a module of its own, so that
// what drives a browser is required by nothing else.
package browser
