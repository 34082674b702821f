package providers

import "github.com/argon-go/argon/internal/errs"

// Names of the variables that a wish is read from.
const (
	EnvName  = "ARGON_PROVIDER"       // Wish.Name
	EnvForce = "ARGON_PROVIDER_FORCE" // Wish.Force, 1 or 0
)

// FromEnv is the wish that variables say, which env looks up as os.Getenv does.
// Wish.Iface is not theirs: the conduit knows which interface it was told.
func FromEnv(env func(string) string) (Wish, error) {
	w := Wish{Name: env(EnvName)}
	switch s := env(EnvForce); s {
	case "", "0":
	case "1":
		w.Force = true
	default:
		return w, errs.BadArg("ofi: %s=%q is not 0 or 1", EnvForce, s)
	}
	return w, nil
}
