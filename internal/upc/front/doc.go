// Package front is the front end of the UPC compiler: preprocessor, parser and type checker
// of C99, as far as UPC programs use it, with the language of UPC 1.3. [Parse] makes a typed
// syntax tree of one source file.
//
// The tree has no implicit steps: every conversion is a Cast, every array that becomes a
// pointer a Decay. Errors have file, line and column and are worded as gcc words them; what
// the language has and the compiler has not is an error that begins with "not supported".
//
// A program's THREADS is a constant of the compilation ("static"), or known when the job
// starts ("dynamic", Config.Threads 0). Then a size is a number, or a number times THREADS.
package front
