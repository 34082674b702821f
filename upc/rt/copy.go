package rt

import (
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/internal/upc/races"
)

// MemCpy is upc_memcpy (UPC 1.3, 7.2.5.1): n bytes between places that do not overlap, each of
// which is memory of one thread.
func (t *Thread) MemCpy(to, from Phaseless, n int) {
	if n == 0 {
		return
	}
	t.there("upc_memcpy", to)
	t.there("upc_memcpy", from)
	saw(t, from, n, races.Reads)
	saw(t, to, n, races.Writes)
	t.must(t.x.Copy(to.Thread(), to.Addr(), from.Thread(), from.Addr(), n))
}

// MemGet is upc_memget (7.2.5.2): it fills dst, private memory.
func (t *Thread) MemGet(dst []byte, from Phaseless) {
	if len(dst) != 0 {
		t.there("upc_memget", from)
		saw(t, from, len(dst), races.Reads)
		t.must(t.x.Get(from.Thread(), from.Addr(), dst))
	}
}

// MemPut is upc_memput (7.2.5.3): src is private memory.
func (t *Thread) MemPut(to Phaseless, src []byte) {
	if len(src) != 0 {
		t.there("upc_memput", to)
		saw(t, to, len(src), races.Writes)
		t.must(t.x.Put(to.Thread(), to.Addr(), src))
	}
}

// MemSet is upc_memset (7.2.5.4).
func (t *Thread) MemSet(to Phaseless, c byte, n int) {
	if n != 0 {
		t.there("upc_memset", to)
		saw(t, to, n, races.Writes)
		t.must(t.x.Memset(to.Thread(), to.Addr(), c, n))
	}
}

// Handle is upc_handle_t (7.9.3): an operation under way. The zero Handle is
// UPC_COMPLETE_HANDLE. Each other one is given once to Sync, or to a SyncAttempt that returns
// true.
type Handle = extended.Handle

// MemCpyNB is upc_memcpy_nb (7.9.4.1). Between two other threads it is complete when it returns.
func (t *Thread) MemCpyNB(to, from Phaseless, n int) Handle {
	switch {
	case n == 0:
		return 0
	case from != 0 && from.Thread() == t.me:
		return t.MemPutNB(to, own(t, from, n, races.Reads))
	case to != 0 && to.Thread() == t.me:
		return t.MemGetNB(own(t, to, n, races.Writes), from)
	}
	t.MemCpy(to, from, n)
	return 0
}

// MemGetNB is upc_memget_nb. dst is undefined until the operation is synchronized.
func (t *Thread) MemGetNB(dst []byte, from Phaseless) Handle {
	if len(dst) == 0 {
		return 0
	}
	t.there("upc_memget_nb", from)
	saw(t, from, len(dst), races.Reads)
	h, err := t.x.GetNB(from.Thread(), from.Addr(), dst)
	t.must(err)
	return h
}

// MemPutNB is upc_memput_nb. src must not change until the operation is synchronized.
func (t *Thread) MemPutNB(to Phaseless, src []byte) Handle {
	if len(src) == 0 {
		return 0
	}
	t.there("upc_memput_nb", to)
	saw(t, to, len(src), races.Writes)
	h, err := t.x.PutBulkNB(to.Thread(), to.Addr(), src)
	t.must(err)
	return h
}

// MemSetNB is upc_memset_nb.
func (t *Thread) MemSetNB(to Phaseless, c byte, n int) Handle {
	if n == 0 {
		return 0
	}
	t.there("upc_memset_nb", to)
	saw(t, to, n, races.Writes)
	h, err := t.x.MemsetNB(to.Thread(), to.Addr(), c, n)
	t.must(err)
	return h
}

// Sync is upc_sync (7.9.6.2): it waits until the operation is complete.
func (t *Thread) Sync(h Handle) { t.must(t.x.Wait(h)) }

// SyncAttempt is upc_sync_attempt: whether the operation is complete.
func (t *Thread) SyncAttempt(h Handle) bool {
	done, err := t.x.Try(h)
	t.must(err)
	return done
}

// MemCpyNBI is upc_memcpy_nbi (7.9.5.1): what the functions with these names begin is completed
// by SyncI, and by nothing else: no barrier, fence or strict access waits for it.
func (t *Thread) MemCpyNBI(to, from Phaseless, n int) {
	switch {
	case n == 0:
	case from != 0 && from.Thread() == t.me:
		t.MemPutNBI(to, own(t, from, n, races.Reads))
	case to != 0 && to.Thread() == t.me:
		t.MemGetNBI(own(t, to, n, races.Writes), from)
	default:
		t.MemCpy(to, from, n)
	}
}

// MemGetNBI is upc_memget_nbi.
func (t *Thread) MemGetNBI(dst []byte, from Phaseless) {
	if len(dst) != 0 {
		t.there("upc_memget_nbi", from)
		saw(t, from, len(dst), races.Reads)
		t.must(t.library.GetNBI(from.Thread(), from.Addr(), dst))
	}
}

// MemPutNBI is upc_memput_nbi.
func (t *Thread) MemPutNBI(to Phaseless, src []byte) {
	if len(src) != 0 {
		t.there("upc_memput_nbi", to)
		saw(t, to, len(src), races.Writes)
		t.must(t.library.PutBulkNBI(to.Thread(), to.Addr(), src))
	}
}

// MemSetNBI is upc_memset_nbi.
func (t *Thread) MemSetNBI(to Phaseless, c byte, n int) {
	if n != 0 {
		t.there("upc_memset_nbi", to)
		saw(t, to, n, races.Writes)
		t.must(t.library.MemsetNBI(to.Thread(), to.Addr(), c, n))
	}
}

// SyncI is upc_synci (7.9.7.2).
func (t *Thread) SyncI() { t.must(t.library.Sync(allOps)) }

// SyncIAttempt is upc_synci_attempt.
func (t *Thread) SyncIAttempt() bool {
	done, err := t.library.Try(allOps)
	t.must(err)
	return done
}
