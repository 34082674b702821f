package am

import (
	"fmt"
	"testing"
)

// TestOwners: every index has one owner, whose handlers Attach takes there and
// nowhere else.
func TestOwners(t *testing.T) {
	if own := int(ownHandlers); lastOf(0) < own || ownerOf(hExposed) != 0 || firstRuntime != owners[1].first {
		t.Errorf("%d handlers of this package, the last of which is %d, in 0..%d", own, hExposed, lastOf(0))
	}
	for i, o := range owners {
		if i > 0 && o.first <= owners[i-1].first {
			t.Errorf("the range of %q begins at %d, that before it at %d", o.name, o.first, owners[i-1].first)
		}
	}
	for i, o := range owners[1:clients] {
		i++
		for h := int(firstRuntime); h < FirstClient; h++ {
			name := o.name
			if name == "" {
				name = "mine"
			}
			e := &Messenger{}
			err := e.fillTable(&Config{Runtime: []Entry{{HandlerID(h), fmt.Sprintf("%s.%d", name, h), nop, 0, 0}}})
			if own := h >= int(o.first) && h <= lastOf(i); own != (err == nil) {
				t.Errorf("index %d for a handler of %s: %v", h, name, err)
			}
			if err == nil && ownerOf(HandlerID(h)) != i {
				t.Errorf("index %d is of %q, not %q", h, owners[ownerOf(HandlerID(h))].name, o.name)
			}
		}
	}
}
