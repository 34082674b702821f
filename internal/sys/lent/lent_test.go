package lent

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// person is a member and what a plain model knows of it.
type person struct {
	m                 *Member
	has, wants, least uint64
}

// balance does what a member has to: it takes what it may have and unlocks what is called back.
func (p *person) balance(t *rapid.T) {
	may, err := p.m.Balance(p.has, p.wants)
	if err != nil {
		t.Fatal(err)
	}
	if may < p.has {
		p.has = may
		_, err = p.m.Balance(p.has, p.wants)
	} else {
		p.has = may
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestMembers: members join, want more and less, leave, and are killed, in any order. Never is more lent than there is; when each has
// looked often enough each has its least, if it wants that, nothing is left that is wanted but what others have as
// their least, and none has less than another beyond its least unless it wants no more.
func TestMembers(t *testing.T) {
	dir := t.TempDir()
	files := 0
	rapid.Check(t, func(t *rapid.T) {
		files++
		path := filepath.Join(dir, strconv.Itoa(files))
		const limit = 1000
		var all []*person
		defer func() {
			for _, p := range all {
				p.m.Leave()
			}
		}()
		sum := func(of func(p *person) uint64) (n uint64) {
			for _, p := range all {
				n += of(p)
			}
			return n
		}
		pick := func(t *rapid.T) int {
			if len(all) == 0 {
				t.Skip("no members")
			}
			return rapid.IntRange(0, len(all)-1).Draw(t, "member")
		}
		t.Repeat(map[string]func(*rapid.T){
			"join": func(t *rapid.T) {
				least := rapid.Uint64Range(0, limit/3).Draw(t, "least")
				m, err := Join(path, limit, least, nil)
				if fits := sum(func(p *person) uint64 { return p.least })+least <= limit; fits != (err == nil) {
					t.Fatalf("join with %d: %v", least, err)
				}
				if err == nil {
					all = append(all, &person{m: m, least: least})
				}
			},
			"want": func(t *rapid.T) {
				p := all[pick(t)]
				p.wants = rapid.Uint64Range(0, 2*limit).Draw(t, "wants")
				p.balance(t)
			},
			"look": func(t *rapid.T) { all[pick(t)].balance(t) },
			"end": func(t *rapid.T) { // the kernel closes the files of a process that is killed
				i := pick(t)
				all[i].m.Leave()
				all = append(all[:i], all[i+1:]...)
			},
			"quiet": func(t *rapid.T) {
				for range 2 * len(all) {
					for _, p := range all {
						p.balance(t)
					}
				}
				kept := sum(func(p *person) uint64 { return p.least - min(p.least, p.wants) })
				wanted := min(limit-kept, sum(func(p *person) uint64 { return p.wants }))
				if got := sum(func(p *person) uint64 { return p.has }); got > wanted || got+uint64(len(all)) < wanted {
					t.Fatalf("%d of %d are lent, %d are kept, where %d are wanted", got, limit, kept, wanted)
				}
				for i, p := range all {
					if p.has < min(p.wants, p.least) {
						t.Fatalf("member %d has %d: it wants %d, of which %d are its own", i, p.has, p.wants, p.least)
					}
					for k, q := range all {
						if p.has < p.wants && q.has > q.least && p.has+q.least+1 < q.has+p.least {
							t.Fatalf("member %d wants %d and has %d, %d beyond its least; member %d has %d, %d beyond", i, p.wants, p.has, p.has-p.least, k, q.has, q.has-q.least)
						}
					}
				}
			},
			"": func(t *rapid.T) {
				if got := sum(func(p *person) uint64 { return p.has }); got > limit {
					t.Fatalf("%d of %d are lent", got, limit)
				}
			},
		})
	})
}

// TestDisagree: limits are the same for all members that are alive.
func TestDisagree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	a, err := Join(path, 100, 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Join(path, 200, 10, nil); err == nil || !strings.Contains(err.Error(), "200 bytes may be locked on this host, other jobs say 100") {
		t.Fatalf("another limit: %v", err)
	}
	a.Leave()
	b, err := Join(path, 200, 200, nil)
	if err != nil {
		t.Fatalf("another limit, of one that has ended: %v", err)
	}
	b.Leave()
}
