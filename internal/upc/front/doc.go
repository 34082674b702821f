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
//
// A parser of C from elsewhere, such as modernc.org/cc/v4, has closed keywords and no place
// in its types for a shared qualifier with a block, or for a size times THREADS; rewriting
// tokens for it loses columns and the qualifiers of later declarators. So this one is made for
// both languages at once, and needs nothing but the standard library.
//
// Statements that a goto or a case label leads into, past the head of a loop or into a block, are
// labels and gotos of the block around them in the tree (flatten.go).
//
// A long double is a double.
//
// Of what UPC leaves undefined and a compiler can see, a file has warnings (Unit.Warnings).
package front
