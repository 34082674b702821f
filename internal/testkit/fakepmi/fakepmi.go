// Package fakepmi is a process manager of PMI-1 for tests, see package pmi.
package fakepmi

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
)

// A Manager serves a job of Size processes until the test ends. It spells its answers as Hydra
// does, or Slurm.
type Manager struct {
	Size  int
	Slurm bool

	mu      sync.Mutex
	space   map[string]string
	waiting []net.Conn // in the barrier
	ended   int
}

// Serve is the manager's end of one process's connection. It returns when that has ended.
func (m *Manager) Serve(t testing.TB, conn net.Conn) {
	defer conn.Close()
	in := bufio.NewScanner(conn)
	for in.Scan() {
		for _, c := range m.answer(t, conn, in.Text()) {
			if _, err := fmt.Fprint(c.conn, c.line); err != nil {
				return // the process has ended
			}
		}
	}
}

// Ended counts the processes that have said finalize.
func (m *Manager) Ended() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended
}

// Value is what a key has.
func (m *Manager) Value(key string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.space[key]
}

// said is a line that a process is sent.
type said struct {
	conn net.Conn
	line string
}

func (m *Manager) answer(t testing.TB, conn net.Conn, line string) []said {
	m.mu.Lock()
	defer m.mu.Unlock()
	words := map[string]string{}
	for w := range strings.FieldsSeq(line) {
		k, v, _ := strings.Cut(w, "=")
		words[k] = v
	}
	reply := func(cmd, rest string, rc int) []said {
		text := fmt.Sprintf("cmd=%s %src=%d\n", cmd, rest, rc) // Hydra
		if m.Slurm {
			text = fmt.Sprintf("cmd=%s rc=%d %s\n", cmd, rc, rest)
		}
		return []said{{conn, text}}
	}
	switch words["cmd"] {
	case "init":
		return reply("response_to_init", "pmi_version=1 pmi_subversion=1 ", 0)
	case "get_maxes":
		return reply("maxes", "kvsname_max=256 keylen_max=64 vallen_max=1024 ", 0)
	case "get_my_kvsname":
		return reply("my_kvsname", "kvsname=4711.0 ", 0)
	case "put":
		if m.space == nil {
			m.space = map[string]string{}
		}
		m.space[words["key"]] = words["value"]
		return reply("put_result", "msg=success ", 0)
	case "barrier_in":
		m.waiting = append(m.waiting, conn)
		if len(m.waiting) < m.Size {
			return nil
		}
		var all []said
		for _, c := range m.waiting {
			all = append(all, said{c, "cmd=barrier_out\n"})
		}
		m.waiting = nil
		return all
	case "get":
		v, ok := m.space[words["key"]]
		if !ok {
			return reply("get_result", "msg=key_not_found value=unknown ", -1)
		}
		return reply("get_result", "value="+v+" ", 0)
	case "finalize":
		m.ended++
		return reply("finalize_ack", "", 0)
	}
	t.Errorf("a process says %q to its process manager", line)
	return nil
}
