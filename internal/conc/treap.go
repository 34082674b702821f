package conc

// TreapValue is the value of a node beside its key.
type TreapValue[V any] interface {
	*V
	// Pull computes anew what the value knows of its subtree, from its key, itself and
	// the values below it on the left and on the right. Of a side that is empty, that is
	// the zero V.
	Pull(key uint64, left, right *V)
}

// Treap is a treap: a binary search tree by key, in which each node has a random priority
// that is at most its parent's, so that it is O(log n) deep however values come. Nodes are
// named by indices, which keeps a tree of values without pointers out of the garbage
// collector's way; 0 is no node. Of nodes with equal keys the lower index is first. Make one by NewTreap. It is not safe for concurrent use.
type Treap[V any, P TreapValue[V]] struct {
	n     []node[V] // n[0] is the zero node below all leaves
	root  uint32
	spare uint32 // unused nodes, linked by right
	rng   uint32 // never 0
}

type node[V any] struct {
	v           V
	key         uint64
	left, right uint32 // subtrees
	prio        uint32
}

// NewTreap makes an empty tree.
func NewTreap[V any, P TreapValue[V]]() Treap[V, P] {
	return Treap[V, P]{n: make([]node[V], 1, 2), rng: 2463534242}
}

// Root is the node at the top, 0 if there is none.
func (t *Treap[V, P]) Root() uint32 { return t.root }

// Left and Right are the nodes below x on either side; 0 is no node.
func (t *Treap[V, P]) Left(x uint32) uint32 { return t.n[x].left }

// Right is the other side of Left.
func (t *Treap[V, P]) Right(x uint32) uint32 { return t.n[x].right }

// Key is the key of a node.
func (t *Treap[V, P]) Key(x uint32) uint64 { return t.n[x].key }

// At is the value of a node: of 0, the zero V, which is not to be written. The pointer
// is good until the next Insert.
func (t *Treap[V, P]) At(x uint32) *V { return &t.n[x].v }

// Insert puts v into the tree and returns its node, which is v's until Remove.
func (t *Treap[V, P]) Insert(key uint64, v V) uint32 {
	x := t.spare
	if x != 0 {
		t.spare = t.n[x].right
	} else {
		x = uint32(len(t.n))
		t.n = append(t.n, node[V]{})
	}
	// Any sequence without pattern balances a treap; that it is the same in
	// every run keeps failures repeatable.
	t.rng ^= t.rng << 13
	t.rng ^= t.rng >> 17
	t.rng ^= t.rng << 5
	t.n[x] = node[V]{v: v, key: key, prio: t.rng}
	t.root = t.insert(t.root, x)
	return x
}

// Remove takes node x out of the tree.
func (t *Treap[V, P]) Remove(x uint32) {
	t.root = t.remove(t.root, x)
	t.n[x] = node[V]{right: t.spare}
	t.spare = x
}

// Refresh has all nodes above x and x itself Pull, since x's value has changed.
func (t *Treap[V, P]) Refresh(x uint32) { t.refresh(t.root, x) }

func (t *Treap[V, P]) refresh(s, x uint32) {
	switch {
	case s == x:
	case t.before(s, x):
		t.refresh(t.n[s].right, x)
	default:
		t.refresh(t.n[s].left, x)
	}
	t.pull(s)
}

func (t *Treap[V, P]) before(x, y uint32) bool {
	a, b := t.n[x].key, t.n[y].key
	return a < b || a == b && x < y
}

func (t *Treap[V, P]) pull(x uint32) {
	n := &t.n[x]
	P(&n.v).Pull(n.key, &t.n[n.left].v, &t.n[n.right].v)
}

// insert puts x into subtree s.
func (t *Treap[V, P]) insert(s, x uint32) uint32 {
	switch {
	case s == 0:
		t.pull(x)
		return x
	case t.n[x].prio > t.n[s].prio:
		t.n[x].left, t.n[x].right = t.split(s, x)
		t.pull(x)
		return x
	case t.before(s, x):
		t.n[s].right = t.insert(t.n[s].right, x)
	default:
		t.n[s].left = t.insert(t.n[s].left, x)
	}
	t.pull(s)
	return s
}

// split parts subtree s into what comes before x, and the rest.
func (t *Treap[V, P]) split(s, x uint32) (low, high uint32) {
	if s == 0 {
		return 0, 0
	}
	if t.before(s, x) {
		t.n[s].right, high = t.split(t.n[s].right, x)
		low = s
	} else {
		low, t.n[s].left = t.split(t.n[s].left, x)
		high = s
	}
	t.pull(s)
	return low, high
}

// remove takes x out of subtree s, which contains it.
func (t *Treap[V, P]) remove(s, x uint32) uint32 {
	switch {
	case s == x:
		return t.join(t.n[s].left, t.n[s].right)
	case t.before(s, x):
		t.n[s].right = t.remove(t.n[s].right, x)
	default:
		t.n[s].left = t.remove(t.n[s].left, x)
	}
	t.pull(s)
	return s
}

// join makes one subtree of two, all of low being before all of high.
func (t *Treap[V, P]) join(low, high uint32) uint32 {
	switch {
	case low == 0:
		return high
	case high == 0:
		return low
	case t.n[low].prio > t.n[high].prio:
		t.n[low].right = t.join(t.n[low].right, high)
		t.pull(low)
		return low
	}
	t.n[high].left = t.join(low, t.n[high].left)
	t.pull(high)
	return high
}
