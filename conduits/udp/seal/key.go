package seal

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/argon-go/argon/internal/errs"
)

// KeySize is the length of a job's key in bytes.
const KeySize = 32

// The environment variables that LoadKey reads.
const (
	// EnvKey holds the key itself, as 64 hexadecimal digits.
	EnvKey = "ARGON_JOB_KEY"
	// EnvKeyFile names a file that holds the key, as 64 hexadecimal digits.
	EnvKeyFile = "ARGON_JOB_KEY_FILE"
)

// secret is what a key looks like to whoever prints it.
const secret = "(secret)"

// A Key is a job's secret. The zero Key is no key: only a Sealer of mode None
// takes it. A Key prints as "(secret)" in every form and cannot be serialised
// except by Reveal. Copies share the secret, which does not change; use from
// several goroutines is safe.
type Key struct {
	// A function, for whoever prints a structure with a Key in an unexported field
	// (fmt, a debugging package) does not ask the methods below but follows
	// pointers, as fmt does under a verb that does not fit. Not to be compared by
	// ==, which would tell by its time where two keys differ.
	secret func() *[KeySize]byte
}

func keyOf(b [KeySize]byte) Key { return Key{func() *[KeySize]byte { return &b }} }

// NewKey makes a key from the system's random numbers.
func NewKey() Key {
	var b [KeySize]byte
	rand.Read(b[:]) // never fails: see crypto/rand
	return keyOf(b)
}

// ParseKey reads a key from 64 hexadecimal digits, with or without white space
// around them. Its errors say what is wrong without any part of s.
func ParseKey(s string) (Key, error) {
	s = strings.TrimSpace(s)
	if len(s) != 2*KeySize {
		return Key{}, errs.BadArg("seal: a job key has %d hexadecimal digits, not %d characters", 2*KeySize, len(s))
	}
	var b [KeySize]byte
	if _, err := hex.Decode(b[:], []byte(s)); err != nil {
		// hex's own error quotes the character.
		return Key{}, errs.BadArg("seal: a job key has %d hexadecimal digits; there is another character", 2*KeySize)
	}
	if b == [KeySize]byte{} {
		return Key{}, errs.BadArg("seal: the job key is all zeros, which anybody can guess")
	}
	return keyOf(b), nil
}

// LoadKey reads the job's key from the file that ARGON_JOB_KEY_FILE names, or
// from ARGON_JOB_KEY. Neither is ErrNotReady, both or an unusable one
// ErrBadArg. The file must not be accessible to other users than its owner and
// group.
func LoadKey() (Key, error) { return LoadKeyFrom(os.Getenv) }

// LoadKeyFrom is LoadKey for an environment that env looks up, as os.Getenv
// does.
func LoadKeyFrom(env func(key string) string) (Key, error) {
	text, file := env(EnvKey), env(EnvKeyFile)
	switch {
	case text != "" && file != "":
		return Key{}, errs.BadArg("seal: %s and %s are both set; which one holds?", EnvKey, EnvKeyFile)
	case file != "":
		k, err := readKey(file)
		if err != nil {
			return Key{}, fmt.Errorf("%s: %w", EnvKeyFile, err)
		}
		return k, nil
	case text != "":
		k, err := ParseKey(text)
		if err != nil {
			return Key{}, fmt.Errorf("%s: %w", EnvKey, err)
		}
		return k, nil
	}
	return Key{}, errs.NotReady("seal: no job key: neither %s nor %s is set", EnvKeyFile, EnvKey)
}

// readKey does not put the name into errors: who confuses the two variables has
// put the key there.
func readKey(name string) (Key, error) {
	f, err := os.Open(name)
	if err != nil {
		return Key{}, errs.BadArg("seal: cannot open the key file: %v", cause(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Key{}, errs.BadArg("seal: cannot read the key file: %v", cause(err))
	}
	if p := info.Mode().Perm(); p&0o007 != 0 {
		return Key{}, errs.BadArg("seal: the key file has mode %#o and is open to all users; take their rights away (chmod 600)", p)
	}
	const room = 4096 // a key and some white space
	b, err := io.ReadAll(io.LimitReader(f, room))
	if err != nil {
		return Key{}, errs.BadArg("seal: cannot read the key file: %v", cause(err))
	}
	return ParseKey(string(b))
}

// cause is err without the name of the file.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Valid says whether k is a key and not the zero Key.
func (k Key) Valid() bool { return k.secret != nil }

// Equal says whether two keys are the same, in a time that does not tell where
// they differ.
func (k Key) Equal(other Key) bool {
	if k.secret == nil || other.secret == nil {
		return k.secret == nil && other.secret == nil
	}
	return subtle.ConstantTimeCompare(k.secret()[:], other.secret()[:]) == 1
}

// ForJob derives the key of one job from a key that is used for several. All
// ranks of the job give the same instance, which no other job under this key
// has: such as 16 random bytes from the rendezvous. It need not be secret. The
// zero Key stays itself.
func (k Key) ForJob(instance []byte) Key {
	if k.secret == nil {
		return k
	}
	return keyOf([KeySize]byte(k.derive("job", instance, KeySize)))
}

// ForPurpose derives a key for another use than datagrams, such as the
// rendezvous: what is known under one purpose says nothing about the others. The
// zero Key stays itself.
func (k Key) ForPurpose(purpose string) Key {
	if k.secret == nil {
		return k
	}
	return keyOf([KeySize]byte(k.derive("purpose", []byte(purpose), KeySize)))
}

// Seed derives bytes for other cryptography than datagrams, such as an ed25519
// key: what is known of them says nothing about the key, nor about the seeds and
// keys of other purposes. They are as secret as the key. The zero Key has none
// and panics.
func (k Key) Seed(purpose string) [KeySize]byte {
	return [KeySize]byte(k.derive("seed", []byte(purpose), KeySize))
}

// Reveal returns the key as ParseKey reads it, to write into a file that only
// its owner may read or into the environment of a rank.
func (k Key) Reveal() string {
	if k.secret == nil {
		return ""
	}
	return hex.EncodeToString(k.secret()[:])
}

// String returns "(secret)".
func (Key) String() string { return secret }

// Format prints "(secret)", whatever the verb.
func (Key) Format(f fmt.State, _ rune) { io.WriteString(f, secret) }

// MarshalText returns "(secret)"; JSON, XML and log/slog use it.
func (Key) MarshalText() ([]byte, error) { return []byte(secret), nil }

// MarshalBinary fails: encoding/gob would store the key.
func (Key) MarshalBinary() ([]byte, error) {
	return nil, errs.NotSupported("seal: a job key is not serialised")
}

// derive returns n bytes that only a holder of k can compute. No two different
// pairs of use and context are the same input: use has no zero byte.
func (k Key) derive(use string, context []byte, n int) []byte {
	info := "argon datagram seal v1 " + use + "\x00" + string(context)
	// The key is uniformly random, so that HKDF's extraction is not needed.
	b, err := hkdf.Expand(sha256.New, k.secret()[:], info, n)
	if err != nil {
		panic("seal: " + err.Error()) // n is a constant far below HKDF's limit
	}
	return b
}

// senderKey derives what source, in that incarnation, seals with.
func (k Key) senderKey(mode Mode, source uint32, incarnation uint64) []byte {
	var c [13]byte
	c[0] = byte(mode)
	binary.BigEndian.PutUint32(c[1:], source)
	binary.BigEndian.PutUint64(c[5:], incarnation)
	return k.derive("sender", c[:], cipherKeySize)
}
