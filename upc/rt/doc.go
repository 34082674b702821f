// Package rt is what programs of a compiler for UPC 1.3 call: every service of the language
// and its libraries, with plain arguments and without error results. It is a thin front of
// packages gas and extended: a UPC thread is a rank.
//
// Sections are those of the UPC Language, Required Library (7.4, 7.5) and Optional Library
// (7.6 to 7.9) Specifications, version 1.3.
//
// # Pointers-to-shared
//
// A type with block size 1 or the indefinite one has [Phaseless] pointers, every other type
// and "shared void *" has [Phased] ones; both are words of 8 bytes, so that structures have
// one layout. [Wide] is either, unpacked. Sizes, block sizes and THREADS are arguments of the
// arithmetic: a compiler passes constants. What UPC leaves undefined has some result, and
// is not looked for.
//
//	UPC                       Phaseless        Phased
//	p + 1                     Next, AddLocal   Next
//	p + n, p - n              Add, AddLocal    Add
//	p - r; p < r              Sub, SubLocal    Sub, and its sign
//	p == r                    ==               Equal
//	(shared [B] T *)p         Phased           Phaseless, ResetPhase, or nothing: see Wide.Cast
//	upc_threadof              Thread           Thread
//	upc_phaseof               0                Phase
//	upc_addrfield             AddrField        AddrField
//	upc_resetphase            p                ResetPhase
//
// [ToPtr] and [FromPtr] lead to and from the pointers of package gas.
package rt
