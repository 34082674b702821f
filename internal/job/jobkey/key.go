package jobkey

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"
)

// Size is the length of a job's key in bytes.
const Size = 32

// secret is printed in place of a key.
const secret = "(secret)"

// A Key is a job's secret. The zero Key is no key. A Key prints as "(secret)" in every
// form and cannot be serialised except by Reveal. Copies share the secret, which does
// not change; use from several goroutines is safe.
type Key struct {
	// A function, for what prints a structure with a Key in an unexported field
	// (fmt, a debugging package) does not ask the methods below but follows
	// pointers, as fmt does under a verb that does not fit. Not to be compared by
	// ==, which would tell by its time where two keys differ.
	secret func() *[Size]byte
}

func keyOf(b [Size]byte) Key { return Key{func() *[Size]byte { return &b }} }

// New makes a key from the system's random numbers.
func New() Key {
	var b [Size]byte
	rand.Read(b[:]) // never fails: see crypto/rand
	return keyOf(b)
}

// Parse reads a key from 64 hexadecimal digits, with or without white space
// around them. Its errors say what is wrong without any part of s.
func Parse(s string) (Key, error) {
	s = strings.TrimSpace(s)
	if len(s) != 2*Size {
		return Key{}, errs.BadArg("jobkey: a job key has %d hexadecimal digits, not %d characters", 2*Size, len(s))
	}
	var b [Size]byte
	if _, err := hex.Decode(b[:], []byte(s)); err != nil {
		// hex's own error quotes the character.
		return Key{}, errs.BadArg("jobkey: a job key has %d hexadecimal digits; there is another character", 2*Size)
	}
	if b == [Size]byte{} {
		return Key{}, errs.BadArg("jobkey: the job key is all zeros, which anybody can guess")
	}
	return keyOf(b), nil
}

// LoadFrom reads the job's key from the file that ARGON_JOB_KEY_FILE names, or
// from ARGON_JOB_KEY, which env looks up, as os.Getenv does. Neither is ErrNotReady, both or an
// unusable one ErrBadArg. The file must not be accessible to other users than its owner and
// group.
func LoadFrom(env func(key string) string) (Key, error) {
	text, file := env(jobenv.JobKey), env(jobenv.JobKeyFile)
	switch {
	case text != "" && file != "":
		return Key{}, errs.BadArg("jobkey: %s and %s are both set; which one holds?", jobenv.JobKey, jobenv.JobKeyFile)
	case file != "":
		k, err := readKey(file)
		if err != nil {
			return Key{}, fmt.Errorf("%s%s: %w", jobenv.JobKeyFile, shown(file), err)
		}
		return k, nil
	case text != "":
		k, err := Parse(text)
		if err != nil {
			return Key{}, fmt.Errorf("%s: %w", jobenv.JobKey, err)
		}
		return k, nil
	}
	return Key{}, errs.NotReady("jobkey: no job key: neither %s nor %s is set", jobenv.JobKeyFile, jobenv.JobKey)
}

// shown is the name of a key file for an error. If the two variables are confused
// the key is there, or most of it, so that a name with many hexadecimal digits in a
// row is left out.
func shown(file string) string {
	const many = Size / 2
	run := 0
	for _, c := range []byte(file) {
		if run++; !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			run = 0
		}
		if run == many {
			return ""
		}
	}
	return fmt.Sprintf("=%q", file)
}

// readKey does not put the name into errors, see shown.
func readKey(name string) (Key, error) {
	f, err := os.Open(name)
	if err != nil {
		return Key{}, errs.BadArg("jobkey: cannot open the key file: %v", errs.Cause(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Key{}, errs.BadArg("jobkey: cannot read the key file: %v", errs.Cause(err))
	}
	if p := info.Mode().Perm(); p&0o007 != 0 {
		return Key{}, errs.BadArg("jobkey: the key file has mode %#o and is open to all users; take their rights away (chmod 600)", p)
	}
	const room = 4096 // a key and some white space
	b, err := io.ReadAll(io.LimitReader(f, room))
	if err != nil {
		return Key{}, errs.BadArg("jobkey: cannot read the key file: %v", errs.Cause(err))
	}
	return Parse(string(b))
}

// Valid reports whether k is a key and not the zero Key.
func (k Key) Valid() bool { return k.secret != nil }

// Equal reports whether two keys are the same, in a time that does not tell where
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
	return keyOf([Size]byte(k.Derive("job", instance, Size)))
}

// Seed derives bytes for other cryptography than datagrams, such as an ed25519
// key: what is known of them says nothing about the key, nor about the seeds and
// keys of other purposes. They are as secret as the key. The zero Key has none
// and panics.
func (k Key) Seed(purpose string) [Size]byte {
	return [Size]byte(k.Derive("seed", []byte(purpose), Size))
}

// Reveal returns the key as Parse reads it, to write into a file that only
// its owner may read or into the environment of a rank.
func (k Key) Reveal() string {
	if k.secret == nil {
		return ""
	}
	return hex.EncodeToString(k.secret()[:])
}

// File returns an open file without a name that holds the key, for ranks to
// inherit: its owner can read it by /proc/self/fd while it is open, and no other user can
// change it. The caller closes it.
func (k Key) File() (*os.File, error) {
	f, err := sys.CreateMemory("", "argon-key", 0)
	if err != nil {
		if f, err = sys.CreateMemory("/dev/shm", "argon-key", 0); err != nil {
			return nil, errs.Resource("jobkey: cannot make a file in memory for the job's key: %v", err)
		}
	}
	defer f.Close()
	if _, err = f.WriteString(k.Reveal()); err == nil {
		err = f.Chmod(0o400)
	}
	var r *os.File
	if err == nil { // what ranks inherit is not open for writing
		r, err = os.Open(jobenv.FDFolder + strconv.Itoa(int(f.Fd())))
	}
	if err != nil {
		return nil, errs.Resource("jobkey: cannot make a file in memory for the job's key: %v", err)
	}
	return r, nil
}

// String returns "(secret)".
func (Key) String() string { return secret }

// Format prints "(secret)", whatever the verb.
func (Key) Format(f fmt.State, _ rune) { io.WriteString(f, secret) }

// MarshalText returns "(secret)"; JSON, XML and log/slog use it.
func (Key) MarshalText() ([]byte, error) { return []byte(secret), nil }

// MarshalBinary fails: encoding/gob would store the key.
func (Key) MarshalBinary() ([]byte, error) {
	return nil, errs.NotSupported("jobkey: a job key is not serialised")
}

// Derive returns n bytes that only a holder of k can compute. No two different
// pairs of use and context are the same input: use has no zero byte. The
// zero Key has no secret and panics.
func (k Key) Derive(use string, context []byte, n int) []byte {
	info := "argon datagram seal v1 " + use + "\x00" + string(context)
	// The key is uniformly random, so that HKDF's extraction is not needed.
	b, err := hkdf.Expand(sha256.New, k.secret()[:], info, n)
	if err != nil {
		panic("jobkey: " + err.Error()) // n is a constant far below HKDF's limit
	}
	return b
}
