// Package guest calls C libraries where these may change what belongs to the whole
// process: the handlers of signals, which are those of Go's runtime, and the descriptors
// that programs which the process starts inherit. It is empty in builds without the tag
// ofi.
//
// Constructors of libraries may install handlers before Go's runtime begins. That runtime
// installs its own over them, but has theirs run at the end of a process that a signal
// ends. Those of libinfinipath and libpsm2, on which Debian's
// libfabric depends, would write a file *.btr then, and end the process with a status in
// place of the signal. This package takes them away before main.
package guest
