package launch

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
)

// A Host is a machine that ranks run on.
type Host struct {
	// Name is ssh's destination: a name, perhaps with a user (user@name), or an
	// address, which if it is one of IPv6 has no brackets.
	Name string
	// Slots is how many ranks fit; 0 means that it has not been said, which counts as
	// Config.PerHost or as 1.
	Slots int
	// Here says that it is this machine, so that no ssh is needed.
	Here bool
}

// maxHosts bounds what a list of hosts may hold.
const maxHosts = jobenv.MaxRanks

// ParseHosts reads a comma-separated list of hosts, such as
//
//	a:8,user@b:8,[fd00::5]:4,10.1.2.3,localhost:2
//
// The number after the colon is that of the slots. localhost (and its
// kin, such as ip6-localhost) and loopback addresses are this machine, and each entry of them counts as a host of its own;
// entries of any other name are taken together, and so are those of one address in
// whatever form.
func ParseHosts(list string) ([]Host, error) {
	var all []Host
	for _, entry := range strings.Split(list, ",") {
		h, err := parseHost(strings.TrimSpace(entry))
		if err != nil {
			return nil, fmt.Errorf("%w (-hosts)", err)
		}
		all = append(all, h)
	}
	return mergeHosts(all)
}

// ReadHostfile reads a file that has one host a line: NAME, NAME:SLOTS or NAME
// slots=SLOTS. What follows a # is a comment.
func ReadHostfile(name string) ([]Host, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, errs.BadArg("launch: %v (-hostfile)", err)
	}
	all, err := parseHostfile(string(b))
	if err != nil {
		return nil, errs.BadArg("launch: %s: %v (-hostfile)", name, err)
	}
	return all, nil
}

func parseHostfile(text string) ([]Host, error) {
	var all []Host
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		h, err := parseHost(words[0])
		if err == nil && len(words) > 1 {
			slots, ok := strings.CutPrefix(words[1], "slots=")
			switch {
			case !ok || len(words) > 2:
				err = fmt.Errorf("%q is more than a host and slots=N", strings.TrimSpace(line))
			case h.Slots != 0:
				err = fmt.Errorf("%q has slots twice", strings.TrimSpace(line))
			default:
				h.Slots, err = parseSlots(words[0], slots)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %v", i+1, bare(err))
		}
		all = append(all, h)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no host in it")
	}
	return mergeHosts(all)
}

// bare is an error's text without the name of this package.
func bare(err error) string { return strings.TrimPrefix(err.Error(), "launch: ") }

// parseHost reads one entry.
func parseHost(entry string) (Host, error) {
	name, slots := entry, ""
	user := ""
	if i := strings.LastIndexByte(entry, '@'); i >= 0 {
		user, name = entry[:i+1], entry[i+1:]
	}
	if inner, ok := strings.CutPrefix(name, "["); ok {
		addr, rest, closed := strings.Cut(inner, "]")
		if a, err := netip.ParseAddr(addr); !closed || err != nil || !a.Is6() || rest != "" && rest[0] != ':' {
			return Host{}, errs.BadArg("launch: host %q: brackets hold an IPv6 address, such as [fd00::5]:8", entry)
		}
		name, slots = addr, rest
	} else if _, err := netip.ParseAddr(name); err != nil { // else it is an address as a whole
		if i := strings.IndexByte(name, ':'); i >= 0 {
			name, slots = name[:i], name[i:]
		}
	}
	if a, err := netip.ParseAddr(name); err == nil { // one address has one name
		name = a.Unmap().String()
	}
	h := Host{Name: user + name}
	odd := func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune(`,;:[]"'\|&<>()$*?#`+"`", r)
	}
	addr, err := netip.ParseAddr(name)
	free := user + name // the part not checked yet; of an address only the zone, after %
	if err == nil {
		free = user + addr.Zone()
	}
	if name == "" || user == "@" || h.Name[0] == '-' || name[0] == '-' || strings.IndexFunc(free, odd) >= 0 {
		return Host{}, errs.BadArg("launch: %q is no host: NAME, NAME:SLOTS or [IPV6]:SLOTS", entry)
	}
	if slots != "" {
		var err error
		if h.Slots, err = parseSlots(entry, slots[1:]); err != nil {
			return Host{}, err
		}
	}
	h.Here = user == "" && (isLoopback(name, addr) || isSelf(name))
	return h, nil
}

func parseSlots(entry, s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > jobenv.MaxRanks {
		return 0, errs.BadArg("launch: host %q has %q slots: a number from 1 to %d", entry, s, jobenv.MaxRanks)
	}
	return n, nil
}

// loopbackNames are names of this machine in /etc/hosts of common systems, beside those that
// RFC 6761, 6.3 reserves.
var loopbackNames = []string{"localhost", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback"}

func isLoopback(name string, addr netip.Addr) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return addr.IsLoopback() || strings.HasSuffix(name, ".localhost") ||
		slices.Contains(loopbackNames, strings.TrimSuffix(name, ".localdomain"))
}

// isSelf reports whether name is this machine's.
func isSelf(name string) bool {
	own, err := os.Hostname()
	if err != nil || own == "" {
		return false
	}
	short, _, _ := strings.Cut(own, ".")
	return strings.EqualFold(name, own) || strings.EqualFold(name, short)
}

// mergeHosts takes entries of the same name together, loopback excepted: some
// resource managers list a host once for each slot.
func mergeHosts(all []Host) ([]Host, error) {
	if len(all) > maxHosts {
		return nil, errs.BadArg("launch: %d hosts: at most %d (-hosts, -hostfile)", len(all), maxHosts)
	}
	at := map[string]int{}
	var merged []Host
	for _, h := range all {
		i, again := at[h.Name]
		addr, _ := netip.ParseAddr(h.Name)
		if !again || isLoopback(h.Name, addr) {
			at[h.Name] = len(merged)
			merged = append(merged, h)
			continue
		}
		merged[i].Slots = max(merged[i].Slots, 1) + max(h.Slots, 1)
	}
	return merged, nil
}

// A placement is the part of a job that runs on one host.
type placement struct {
	Host
	label       string // what messages call it; no other placement has it
	index       int    // among the hosts that have ranks
	first, size int    // numbers of its ranks: size of them from first on
	own         bool   // its deputy is in this process, and it has no label
}

// place spreads the ranks over the hosts in blocks. Hosts that get none are left
// out. If none are named, that is this process.
func (c *Config) place() ([]placement, error) {
	if len(c.Hosts) == 0 {
		return []placement{{Host: Host{Here: true}, size: c.processes(), own: true}}, nil
	}
	slots := make([]int, len(c.Hosts))
	total := 0
	for i, h := range c.Hosts {
		slots[i] = h.Slots
		switch {
		case c.PerHost > 0 && h.Slots == 0:
			slots[i] = c.PerHost
		case c.PerHost > 0 && h.Slots < c.PerHost:
			return nil, errs.BadArg("launch: host %s has %d slots, fewer than %d ranks (-ppn)", h.Name, h.Slots, c.PerHost)
		case c.PerHost > 0:
			slots[i] = c.PerHost
		case h.Slots == 0:
			slots[i] = 1
		}
		total += slots[i]
	}
	size := c.Size
	if size == 0 {
		size = total
	}
	if size > total {
		return nil, errs.BadArg("launch: %d ranks for %d slots on %d hosts (-n; slots as in -hosts NAME:SLOTS, or -ppn)", size, total, len(c.Hosts))
	}
	if size > jobenv.MaxRanks {
		return nil, errs.BadArg("launch: %d slots on %d hosts: a job has 1 to %d ranks (-n)", size, len(c.Hosts), jobenv.MaxRanks)
	}
	count := map[string]int{}
	for _, h := range c.Hosts {
		count[h.Name]++
	}
	seen := map[string]int{}
	var all []placement
	for i, first := 0, 0; first < size; i++ {
		h := c.Hosts[i]
		p := placement{Host: h, label: h.Name, index: i, first: first, size: min(slots[i], size-first)}
		if count[h.Name] > 1 {
			seen[h.Name]++
			p.label = fmt.Sprintf("%s#%d", h.Name, seen[h.Name])
		}
		all = append(all, p)
		first += p.size
	}
	return all, nil
}

// splitWords splits a command into words as a shell does: at white space, except
// inside quotes and after backslashes. There are no variables.
func splitWords(s string) ([]string, error) {
	var words []string
	var word []rune
	inside := false // a word has begun
	var quote rune
	rs := []rune(s)
	for i := 0; i < len(rs); i++ {
		switch r := rs[i]; {
		case quote == '\'' && r != '\'':
			word = append(word, r)
		case r == '\\':
			if i++; i == len(rs) {
				return nil, errors.New("nothing follows the last backslash")
			}
			if quote == '"' && rs[i] != '"' && rs[i] != '\\' {
				word = append(word, '\\')
			}
			word, inside = append(word, rs[i]), true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word = append(word, r)
		case r == '"' || r == '\'':
			quote, inside = r, true
		case unicode.IsSpace(r):
			if inside {
				words = append(words, string(word))
			}
			word, inside = nil, false
		default:
			word, inside = append(word, r), true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a %c is not closed", quote)
	}
	if inside {
		words = append(words, string(word))
	}
	return words, nil
}

// ParseSSH reads the command that takes the place of ssh, such as
// "ssh -p 2222".
func ParseSSH(s string) ([]string, error) {
	words, err := splitWords(s)
	if err != nil {
		return nil, errs.BadArg("launch: command %q: %v (-ssh)", s, err)
	}
	if len(words) == 0 || words[0] == "" {
		return nil, errs.BadArg("launch: the command in place of ssh is empty (-ssh)")
	}
	return words, nil
}
