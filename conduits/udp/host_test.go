package udp

import (
	"testing"

	"github.com/argon-go/argon/internal/rendezvous"
)

// TestHostOption: a rank that has not been told the name of its host finds one.
func TestHostOption(t *testing.T) {
	here := rendezvous.ThisHost()
	for env, want := range map[string]string{"": here, "mine": "mine"} {
		o, err := readOptions(func(key string) string {
			if key == EnvHost {
				return env
			}
			return ""
		})
		if err != nil || o.host != want {
			t.Errorf("%s=%q: a rank says %q, %v", EnvHost, env, o.host, err)
		}
	}
}
