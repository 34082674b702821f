package monitor

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/job/where"
)

// get is the answer to a request for path of s, with Host if that is not "".
func get(t *testing.T, c *http.Client, s *Server, path, host string) (int, string) {
	t.Helper()
	r, err := http.NewRequest("GET", path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	a, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(b)
}

// TestServer: the stream, the report and the metrics have the counters of the view; a viewer that reads nothing keeps
// neither others nor the launcher; the end of the job ends all streams and the server.
func TestServer(t *testing.T) {
	var f Feed
	long := strings.Repeat("x", 100<<10)
	asked := launcher(&f, onTwoHosts, func(second int) []where.Answer {
		all := fourRanks(second)
		all[3].Text = "lock \"" + long
		return all
	})
	s, err := Serve(DefaultAddress, &f)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr}
	if status, text := get(t, c, s, s.URL(), ""); status != 200 || text != string(page) || asked() != 0 {
		t.Errorf("the page is %d, %d bytes; ranks asked %d times", status, len(text), asked())
	}

	// With so little room in its socket it blocks the server's writes soon.
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1) })
	}}
	at := strings.Trim(s.URL(), "htp:/")
	deaf, err := d.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	fmt.Fprintf(deaf, "GET /events HTTP/1.1\r\nHost: %s\r\n\r\n", at)

	streams := make([]*bufio.Scanner, 2)
	for i := range streams {
		a, err := c.Get(s.URL() + "events")
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		streams[i] = bufio.NewScanner(a.Body)
		streams[i].Buffer(nil, 1<<20)
	}
	const views = 40 // more than buffers of sockets have
	for range views {
		for _, in := range streams {
			for in.Scan() && in.Text() == "" {
			}
			data, ok := strings.CutPrefix(in.Text(), "data: ")
			var got struct {
				At          time.Duration
				Total       Row
				Hosts, Rows []Row
				Pairs       []where.Pair
			}
			if err := json.Unmarshal([]byte(data), &got); !ok || err != nil {
				t.Fatalf("event %q: %v", in.Text(), err)
			}
			if n := len(got.Pairs); n < 3 || got.Pairs[0].From != 3 || got.Pairs[0].Bytes != 2*got.Rows[3].Sent {
				t.Fatalf("after %v the pairs are %+v", got.At, got.Pairs)
			}
			var sent, received, accesses uint64
			for i, a := range fourRanks(int(got.At / time.Second)) {
				r := got.Rows[i]
				if i != 2 && (r.Sent != a.Sent || r.Received != a.Received || r.Accesses != a.Accesses || r.State != "waits" || r.Since != a.Since || r.ResidentMemory != a.Memory) {
					t.Fatalf("after %v rank %d is %+v, want %+v", got.At, i, r, a)
				}
				sent, received, accesses = sent+r.Sent, received+r.Received, accesses+r.Accesses
			}
			if r := got.Total; r.Sent != sent || r.Received != received || r.Accesses != accesses || len(got.Hosts) != 2 || got.Hosts[0].Sent+got.Hosts[1].Sent != sent {
				t.Fatalf("after %v all ranks are %+v, hosts %+v", got.At, r, got.Hosts)
			}
		}
	}
	_, text := get(t, c, s, s.URL()+"report", "")
	if !strings.Contains(text, "rank 0: barrier phase 3, at main.go:7 (gas.Node.Barrier) for 3s; to rank 3: ") {
		t.Errorf("the report is %q", text)
	}
	_, text = get(t, c, s, s.URL()+"metrics", "")
	n := asked()
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if !regexp.MustCompile(`^(# (HELP|TYPE) argon_[a-z_]+ .+|argon_[a-z_]+\{([a-z_]+="[^"\n]*",?)+\} [0-9.e+]+)$`).MatchString(line) {
			t.Errorf("line %q of the metrics", line)
		}
	}
	if !strings.Contains(text, `argon_peer_no_credit_total{job_id="7.1",rank="0",peer="3"} 1`+"\n") || !strings.Contains(text, `argon_peer_datagrams_resent_total{job_id="7.1",rank="0",peer="3"} 2`+"\n") || !regexp.MustCompile(`argon_peer_bytes_total\{job_id="7.1",rank="3",peer="0"\} \d+0\n`).MatchString(text) {
		t.Errorf("of pairs the metrics have %q", text)
	}
	// A view may have been made for the streams meanwhile.
	sent := regexp.MustCompile(`argon_messages_sent_total\{job_id="7.1",host="b",rank="3"\} (\d+)\n`).FindStringSubmatch(text)
	if sent == nil || !strings.Contains(text, `argon_ranks{job_id="7.1",state="waits"} 3`+"\n") || !strings.Contains(text, "\nargon_longest_wait_seconds{job_id=\"7.1\"} 3\n") {
		t.Errorf("the metrics are %q", text)
	} else if k := 0; true {
		if fmt.Sscan(sent[1], &k); k%40 != 0 || k > 40*n {
			t.Errorf("rank 3 has sent %d in %d seconds", k, n)
		}
	}

	f.Close()
	for _, in := range streams {
		event := ""
		for in.Scan() {
			if strings.HasPrefix(in.Text(), "event: ") {
				event = in.Text()
			}
		}
		if event != "event: over" || in.Err() != nil {
			t.Errorf("a stream ends with %q, %v", event, in.Err())
		}
	}
	s.Close()
	if f.Wanted() {
		t.Error("a viewer waits after the end")
	}
}

// TestRefused: what reaches the loopback interface has to be sent there by its name, and from other hosts a token is
// needed.
func TestRefused(t *testing.T) {
	var f Feed
	launcher(&f, onTwoHosts, fourRanks)
	near, err := Serve(DefaultAddress, &f)
	if err != nil {
		t.Fatal(err)
	}
	far, err := Serve("0.0.0.0:0", &f)
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	defer far.Close()
	defer f.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	c := &http.Client{Transport: tr}
	base, token, _ := strings.Cut(far.URL(), "?token=")
	_, port, _ := net.SplitHostPort(strings.Trim(base, "htp:/"))
	base = "http://127.0.0.1:" + port + "/"
	for _, path := range []string{"", "report", "metrics"} {
		for _, tc := range []struct {
			s         *Server
			url, host string
			status    int
		}{
			{near, near.URL() + path, "", 200},
			{near, near.URL() + path, "localhost:1", 200},
			{near, near.URL() + path, "[::1]:80", 200},
			{near, near.URL() + path, "evil.example", 403},
			{near, near.URL() + path, "127.0.0.1.evil.example:80", 403},
			{near, near.URL() + path, "192.0.2.1", 403},
			{far, base + path, "", 403},
			{far, base + path + "?token=", "", 403},
			{far, base + path + "?token=" + token[:len(token)-1], "", 403},
			{far, base + path + "?token=x&token=" + token, "", 403},
			{far, base + path + "?token=" + token, "any.example", 200},
		} {
			if status, text := get(t, c, tc.s, tc.url, tc.host); status != tc.status {
				t.Errorf("%s as %q: %d, want %d: %.80q", tc.url, tc.host, status, tc.status, text)
			}
		}
	}
	if len(token) < 20 || strings.Contains(near.URL(), "token") {
		t.Errorf("addresses are %s and %s", near.URL(), far.URL())
	}
	if _, err := Serve("127.0.0.1:"+port, &f); err == nil || !strings.Contains(err.Error(), "-monitor") {
		t.Errorf("a port that is taken: %v", err)
	}
}

// TestMetricsByHost: of many ranks there is a line for each host, and for each of the largest pairs.
func TestMetricsByHost(t *testing.T) {
	const size = 10_000
	var f Feed
	launcher(&f, Job{ID: "j", Size: size, Hosts: []Host{{"a", 0, size / 2}, {`b"`, size / 2, size / 2}}}, func(int) (all []where.Answer) {
		for r := range size {
			a := where.Answer{Rank: r, State: where.Runs, Text: fmt.Sprintf("runs %d", r), Sent: 3}
			for to := range 5 {
				a.Met(where.Peer{Rank: to, Bytes: uint64(r)})
			}
			all = append(all, a)
		}
		return all
	})
	v := f.Next(context.Background(), nil)
	text := string(v.Metrics())
	pairs := regexp.MustCompile(`(?m)^argon_peer_.*\n`)
	if n := len(pairs.FindAllString(text, -1)); n != 4*mostRows || strings.Contains(text, `rank="9000"`) || !strings.Contains(text, `rank="9949"`) {
		t.Errorf("%d lines of pairs: %.2000q", n, text)
	}
	text = pairs.ReplaceAllString(text, "")
	if !strings.Contains(text, "argon_messages_sent_total{job_id=\"j\",host=\"b\\\"\"} 15000\n") || len(text) > 4000 {
		t.Errorf("the metrics are %.2000q", text)
	}
	if n := len(v.JSON()); n > 4000+60*mostRows {
		t.Errorf("a view of equal ranks has %d bytes", n)
	}
}
