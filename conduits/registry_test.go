package conduits

import "testing"

// TestMissing: a conduit that is not part of the build says how to get it, and is not
// among those that there are.
func TestMissing(t *testing.T) {
	Register(Conduit{Name: "absent", Missing: "build with -tags absent", Launch: &Launch{}})
	t.Cleanup(func() { delete(reg, "absent") })
	_, err := Lookup("absent")
	wantError(t, "an absent conduit", err, ErrNotSupported, "absent is not part of this build: build with -tags absent")
	_, err = Lookup("none")
	wantError(t, "no conduit", err, ErrBadArg, `no conduit "none"; known:`)
	for _, c := range Launchable() {
		if c.Name == "absent" {
			t.Error("a launcher can start jobs on a conduit that is not there")
		}
	}
}
