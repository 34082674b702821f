package front

// Op is the kind of a Node.
type Op uint8

// Expressions and statements. L, R and C are operands.
const (
	Num     Op = iota // I, of an integer type or a null pointer
	FNum              // F
	Str               // Str with its final 0: an array of char
	Var               // Sym: a variable or function
	Threads           // THREADS
	Mythread

	Add // arithmetic on operands of the node's type
	Sub
	Mul
	Div
	Mod
	And
	Or
	Xor
	Shl // R has a type of its own
	Shr
	Neg
	BitNot

	Eq // comparisons of operands of one type, to int
	Ne
	Lt
	Le
	Gt
	Ge
	LAnd // of scalars, to int
	LOr
	Not

	PtrAdd  // pointer L plus R elements, of type long
	PtrDiff // L - R, elements

	Assign     // L = R
	AssignOp   // L = L Sub R in type Work; Sub is PtrAdd for pointers
	IncDec     // L += I, the value before it if Post
	Cond       // L ? R : C
	Comma      // L, R
	Call       // L(List)
	Deref      // *L
	Addr       // &L
	Index      // L[R] of an array L
	Member     // L.Field
	Decay      // array or function L as a pointer
	Cast       // L converted
	Zero       // L = 0, of any type
	Complex    // L + R i, of its parts
	Compound   // the object L, a variable, initialised by List
	SetStr     // char array L = Str
	Room       // pointer L = R bytes of the stack, whose top variable C keeps
	Statements // List, and the value L behind it, if it has one

	Block    // List
	Decl     // Sym, then List as its initialisation
	Expr     // L;
	If       // L, R, C
	While    // L, R
	Do       // R, L
	For      // Init; L; C: R
	Forall   // Init; L; C; Aff: R
	Switch   // L, R
	Case     // of I, or of I to the number L; R if it stands in another statement than the switch
	Default  //
	Label    // Str
	Goto     // Str
	Break    //
	Continue //
	Return   // L
	Empty    //
	Barrier  // upc_barrier, upc_notify, upc_wait (Str), with L
	Fence    // upc_fence
)

// Node is an expression or a statement.
type Node struct {
	Op   Op
	Pos  Pos
	Type *Type // of an expression

	L, R, C *Node
	Init    *Node // of For and Forall
	Aff     *Node // of Forall: an integer or a pointer-to-shared, or nil
	List    []*Node

	Sym   *Sym
	Field *Field
	Str   string
	I     int64
	F     float64
	Sub   Op    // of AssignOp
	Work  *Type // of AssignOp
	Post  bool  // of IncDec
	Null  bool  // of a Num: a null pointer constant
	Mem   Mem   // of a place in shared memory: Strict or Relaxed
	Calls bool  // of a Forall: the body calls functions
	Inner bool  // of a Forall: it stands in another

	// Target is the label of a Label or, at the end of its function, of a Goto.
	Target *LabelInfo
}

// LabelInfo is a label of a function.
type LabelInfo struct {
	Name  string
	Pos   Pos
	Used  bool
	Found bool
	Loop  *Node // the loop that begins here, of one that was flattened

	at jump
}

// Landing is where setjmp returns to again: a label, and the variable that has what it returns.
type Landing struct{ At, Value *Node }

// Storage is where a symbol lives.
type Storage uint8

// Storages of symbols.
const (
	Local Storage = iota
	Global
	Typedef
	EnumConst
	Function
)

// Sym is the object that an identifier names.
type Sym struct {
	Name    string
	Pos     Pos
	Type    *Type
	Storage Storage
	Static  bool // of Global and Function: of this file only; or declared in Func
	Param   bool
	Defined bool
	Func    *Sym // the function of a Local, or of a Global declared in one
	I       int64

	Align int64 // of a variable, bytes

	Array     bool // a pointer that the program takes for the array that it leads to
	Mark      bool // a pointer of the compiler's, which is null when the function begins
	Addressed bool // its address is taken
	Reads     int  // uses that are not assignments
	Assigned  int  // assignments but for its initialisation
	Used      bool

	Init   []*Node // of a Global
	Body   *Node   // of a Function
	Params []*Sym
	Locals []*Sym
	Gotos  bool // of a Function: it has labels that are used
	// Landings are the places of a Function behind its calls of setjmp.
	Landings []Landing
	Calls    bool // it calls functions
	Stack    bool // of a Function: it calls alloca
	Header   bool // declared by a header of the compiler, or as one declares it
	Def      *Sym // the definition of a Function that is used, once the program is linked

	guessed  bool // an implicit one that is taken for the library's by the number of its arguments
	implicit bool // a Function that was called before it was declared

	Go string // name in the generated code, for package gen
}

// Unit is a source file.
type Unit struct {
	Name     string
	Syms     []*Sym // of file scope and static ones of functions, in order
	Structs  []*StructInfo
	MayAlias bool // see the constant MayAlias
	Relined  bool // #line says where it is from: lines of its file are others than those that places name

	Warnings Errors

	reporter *reporter
}
