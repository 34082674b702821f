package monitor

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed" // the page
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/where"
)

// DefaultAddress is where the page is if nothing else is said: a port of this host that is free.
const DefaultAddress = "127.0.0.1:0"

// Times of the server.
const (
	writeLimit = time.Minute            // for a viewer to take a view; then it is left
	overLimit  = 200 * time.Millisecond // for all of them to hear of the end of the job
)

//go:embed page.html
var page []byte

// policy has the page load nothing from elsewhere, and run no script but its own.
var policy = func() string {
	_, script, _ := bytes.Cut(page, []byte("<script>"))
	script, _, _ = bytes.Cut(script, []byte("</script>"))
	sum := sha256.Sum256(script)
	return "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; " +
		"script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}()

// A Server shows the views of a feed, to Prometheus too, or of a recording to browsers.
type Server struct {
	token  string // that requests must have; "": they must be for an address of the loopback interface
	url    string
	file   *os.File // that is replayed, or nil
	http   http.Server
	served chan struct{}
}

// Serve listens at address, HOST:PORT, and serves f until Close. Where others than this host reach it, requests need a
// token, which URL has.
func Serve(address string, f *Feed) (*Server, error) {
	s := shown{f}
	return serve(address, map[string]http.HandlerFunc{"GET /events": s.events, "GET /report": s.report, "GET /metrics": s.metrics})
}

// serve begins to serve the page, and what else it asks for.
func serve(address string, routes map[string]http.HandlerFunc) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, errs.Resource("monitor: cannot listen at %s: %v (-monitor)", address, err)
	}
	s := &Server{served: make(chan struct{})}
	at := l.Addr().(*net.TCPAddr)
	host := at.IP.String()
	if name, _, _ := net.SplitHostPort(address); at.IP.IsUnspecified() {
		host = "localhost"
		if own, err := os.Hostname(); err == nil {
			host = own
		}
	} else if name != "" {
		host = name
	}
	s.url = "http://" + net.JoinHostPort(host, fmt.Sprint(at.Port)) + "/"
	if !at.IP.IsLoopback() {
		s.token = rand.Text()
		s.url += "?token=" + s.token
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	for path, f := range routes {
		mux.HandleFunc(path, f)
	}
	s.http = http.Server{Handler: s.guard(mux), ReadHeaderTimeout: writeLimit, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(l) // until Close
	}()
	return s, nil
}

// URL is the address of the page.
func (s *Server) URL() string { return s.url }

// Close ends the server, whatever viewers do. The feed is closed.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), overLimit)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}
	<-s.served
	if s.file != nil {
		s.file.Close()
	}
}

// guard refuses requests without the token. Without one, those are refused whose Host is not this one's: a page
// from elsewhere may have its name lead here (DNS rebinding).
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.token != "" && subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("token")), []byte(s.token)) != 1 {
			http.Error(w, "the address lacks the token that gasrun has printed", http.StatusForbidden)
			return
		}
		if s.token == "" && !loopback(r.Host) {
			http.Error(w, "not served under this name", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// loopback reports whether a Host header names this host, and by no name that others give out.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.EqualFold(host, "localhost") || net.ParseIP(strings.Trim(host, "[]")).IsLoopback()
}

func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(page)
}

// shown is a feed that is served.
type shown struct{ feed *Feed }

// events sends views as long as they are taken, as server-sent events.
func (s shown) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	c := http.NewResponseController(w)
	for v := s.feed.Next(r.Context(), nil); v != nil; v = s.feed.Next(r.Context(), v) {
		_ = c.SetWriteDeadline(time.Now().Add(writeLimit))
		if _, err := fmt.Fprintf(w, "data: %s\n\n", v.JSON()); err != nil || c.Flush() != nil {
			return
		}
	}
	_, _ = io.WriteString(w, "event: over\ndata: {}\n\n")
}

// view is one for a request that gets no more; nil if the job has ended, which the request has been told.
func (s shown) view(w http.ResponseWriter, r *http.Request, kind string) *View {
	v := s.feed.Next(r.Context(), nil)
	if v == nil {
		http.Error(w, "the job has ended", http.StatusServiceUnavailable)
		return nil
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeLimit))
	w.Header().Set("Content-Type", kind)
	return v
}

func (s shown) report(w http.ResponseWriter, r *http.Request) {
	if v := s.view(w, r, "text/plain; charset=utf-8"); v != nil {
		_, _ = io.WriteString(w, v.Report())
	}
}

func (s shown) metrics(w http.ResponseWriter, r *http.Request) {
	if v := s.view(w, r, "text/plain; version=0.0.4; charset=utf-8"); v != nil {
		_, _ = w.Write(v.Metrics())
	}
}

var labelText = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// Metrics is the view in Prometheus' text form, 0.0.4: by rank of at most mostRows, else by host, and by pair of ranks of the largest.
func (v *View) Metrics() []byte {
	var b bytes.Buffer
	label := func(host, rank string) string {
		s := fmt.Sprintf(`job_id="%s",host="%s"`, labelText.Replace(v.ID), labelText.Replace(host))
		if rank != "" {
			s += `,rank="` + rank + `"`
		}
		return s
	}
	type series struct {
		labels string
		Row
	}
	var all []series
	hosts := v.ByHost()
	if v.Size <= mostRows && len(v.Answers) == v.Size {
		i := 0
		for r := range v.Answers {
			for r >= v.Hosts[i].First+v.Hosts[i].Size {
				i++
			}
			all = append(all, series{label(hosts[i].Name, fmt.Sprint(r)), v.row("", []int{r})})
		}
	} else {
		for _, h := range hosts {
			all = append(all, series{label(h.Name, ""), h})
		}
	}
	for _, m := range []struct {
		name, kind, help string
		of               func(*Row) any
	}{
		{"messages_sent_total", "counter", "Messages that ranks have sent.", func(r *Row) any { return r.Sent }},
		{"messages_handled_total", "counter", "Messages that ranks have handled.", func(r *Row) any { return r.Received }},
		{"accesses_total", "counter", "Puts, gets and atomics that the transport was asked for.", func(r *Row) any { return r.Accesses }},
		{"processor_seconds_total", "counter", "Processor time of the processes.", func(r *Row) any { return r.ProcessorTime }},
		{"resident_bytes", "gauge", "Resident memory of the processes.", func(r *Row) any { return r.ResidentMemory }},
	} {
		if m.kind == "counter" && len(v.Answers) < v.Size {
			continue // of changing ranks
		}
		fmt.Fprintf(&b, "# HELP argon_%s %s\n# TYPE argon_%s %s\n", m.name, m.help, m.name, m.kind)
		for i := range all {
			fmt.Fprintf(&b, "argon_%s{%s} %v\n", m.name, all[i].labels, m.of(&all[i].Row))
		}
	}
	pairs := where.Pairs(v.Answers, mostRows)
	for _, m := range []struct {
		name, help string
		of         func(*where.Peer) uint64
	}{
		{"peer_messages_total", "Messages from a rank to another one, and accesses.", func(p *where.Peer) uint64 { return p.Count }},
		{"peer_bytes_total", "Bytes of these.", func(p *where.Peer) uint64 { return p.Bytes }},
		{"peer_no_credit_total", "Tries to send that were refused for want of credit.", func(p *where.Peer) uint64 { return p.NoCredit }},
		{"peer_datagrams_resent_total", "Datagrams sent once more.", func(p *where.Peer) uint64 { return p.Resent }},
	} {
		if len(pairs) == 0 || len(v.Answers) < v.Size {
			break
		}
		fmt.Fprintf(&b, "# HELP argon_%s %s\n# TYPE argon_%s counter\n", m.name, m.help, m.name)
		for i := range pairs {
			p := &pairs[i]
			fmt.Fprintf(&b, "argon_%s{job_id=\"%s\",rank=\"%d\",peer=\"%d\"} %d\n", m.name, labelText.Replace(v.ID), p.From, p.Rank, m.of(&p.Peer))
		}
	}
	var n [where.Ended + 1]int
	longest := time.Duration(0)
	for i := range v.Answers {
		a := &v.Answers[i]
		if n[a.State]++; a.State == where.Waits {
			longest = max(longest, a.Since)
		}
	}
	b.WriteString("# HELP argon_ranks How many ranks are in a state.\n# TYPE argon_ranks gauge\n")
	for s, k := range n {
		fmt.Fprintf(&b, "argon_ranks{job_id=\"%s\",state=\"%s\"} %d\n", labelText.Replace(v.ID), where.State(s), k)
	}
	fmt.Fprintf(&b, "# HELP argon_longest_wait_seconds How long the rank waits that has for longest.\n# TYPE argon_longest_wait_seconds gauge\nargon_longest_wait_seconds{job_id=\"%s\"} %v\n",
		labelText.Replace(v.ID), longest.Seconds())
	return b.Bytes()
}
