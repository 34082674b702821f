package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/testkit/testmain"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var write = flag.Bool("write", false, "write the picture of docs/seeing.md anew")

// limit is for whatever a test waits for.
const limit = time.Minute

// asJob has the test binary be the program of a job.
const asJob = "ARGONTEST_BROWSER_JOB"

const root = "../../.."

var (
	browser context.Context // nil: there is none
	built   string          // where gasrun is, and programs are
)

func TestMain(m *testing.M) {
	if os.Getenv(asJob) != "" {
		gas.Main(exchange)
		return
	}
	end, err := prepare()
	code := 1
	if err == nil {
		code = testmain.Run(m)
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	end()
	os.Exit(code)
}

// prepare builds gasrun and starts Chromium, if there is one, until end is called.
func prepare() (end func(), err error) {
	var ends []func()
	end = func() {
		for _, f := range slices.Backward(ends) {
			f()
		}
	}
	if built, err = os.MkdirTemp("", "argon-browser-"); err != nil {
		return end, err
	}
	ends = append(ends, func() { os.RemoveAll(built) })
	if err := errors.Join(os.Setenv("TMPDIR", built), build("cmd/gasrun")); err != nil { // TMPDIR: Chromium's profile, too
		return end, err
	}
	at := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if at, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if at == "" {
		return end, nil // tests skip
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(at))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // it refuses to run as root with one
	}
	alloc, gone := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(alloc)
	ends = append(ends, gone, cancel) // gone waits until its processes are
	late := time.AfterFunc(limit, cancel)
	err = chromedp.Do(ctx) // starts it
	if late.Stop(); err != nil {
		return end, fmt.Errorf("%s: %w", at, err)
	}
	browser = ctx
	return end, nil
}

// build makes the program of a directory of argon.
func build(pkg string) error {
	cmd := exec.Command("go", "build", "-o", built+string(filepath.Separator), "./"+pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", pkg, err, out)
	}
	return nil
}

// exchange has each rank send others different numbers of messages, and then waits for the end
// of standard input: no counter changes meanwhile.
func exchange(n *gas.Node) error {
	if err := n.Barrier(); err != nil {
		return err
	}
	for to := range n.Size() {
		for i := range n.Rank() * (to + 1) * 40 {
			if err := note.Send(n, to, [100]byte{byte(i)}); err != nil {
				return err
			}
		}
	}
	if err := n.Barrier(); err != nil {
		return err
	}
	if n.Rank() == 0 {
		fmt.Println("idle")
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
	}
	return n.Barrier()
}

var note = gas.RegisterCall("note", func(*gas.Node, [100]byte) struct{} { return struct{}{} })

// A job is gasrun's, or gasrun monitor. It ends with the test at the latest.
type job struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.Closer
	url  string
	idle chan struct{} // closed when no counter changes any more
	over chan struct{} // closed when all that it writes is in said

	mu   sync.Mutex
	said bytes.Buffer
}

// needed skips a test where there is no browser.
func needed(t *testing.T) {
	t.Helper()
	if browser == nil {
		t.Skip("skipped: no Chromium here (Debian: chromium)")
	}
}

// start runs gasrun with args, and returns when it has told where the page is.
func start(t *testing.T, args ...string) *job {
	t.Helper()
	needed(t)
	j := &job{t: t, cmd: exec.Command(filepath.Join(built, "gasrun"), args...), idle: make(chan struct{}), over: make(chan struct{})}
	j.cmd.Dir, j.cmd.Env = built, append(os.Environ(), asJob+"=1")
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := j.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	j.in = in
	out, w, err := os.Pipe() // of both, in their order
	if err != nil {
		t.Fatal(err)
	}
	j.cmd.Stdout, j.cmd.Stderr = w, w
	if err := j.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(j.kill)
	address := make(chan string, 1)
	go func() {
		defer close(j.over)
		defer out.Close()
		for lines := bufio.NewScanner(out); lines.Scan(); {
			line := lines.Text()
			j.mu.Lock()
			fmt.Fprintln(&j.said, line)
			j.mu.Unlock()
			if _, url, ok := strings.Cut(line, " shown at "); ok {
				address <- strings.Fields(url)[0]
			}
			if line == "idle" {
				close(j.idle)
			}
		}
	}()
	select {
	case j.url = <-address:
	case <-j.over:
		t.Fatalf("%v has ended: %s", args, j.output())
	case <-time.After(limit):
		t.Fatalf("%v does not say where the page is: %s", args, j.output())
	}
	return j
}

func (j *job) output() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.said.String()
}

// settled waits until no counter changes any more.
func (j *job) settled() {
	j.t.Helper()
	select {
	case <-j.idle:
	case <-j.over:
		j.t.Fatalf("the job has ended: %s", j.output())
	case <-time.After(limit):
		j.t.Fatalf("the job does not come to its end: %s", j.output())
	}
}

// end has the job end by itself.
func (j *job) end() {
	j.t.Helper()
	j.in.Close()
	select {
	case <-j.over:
	case <-time.After(limit):
		j.t.Fatalf("the job does not end: %s", j.output())
	}
	if err := j.cmd.Wait(); err != nil {
		j.t.Fatalf("%v: %s", err, j.output())
	}
}

// kill ends gasrun, which its ranks do not outlive, if that still runs.
func (j *job) kill() {
	if j.cmd.ProcessState == nil {
		_ = j.cmd.Process.Signal(syscall.SIGKILL)
		_ = j.cmd.Wait()
	}
	<-j.over
}

// get is what the server of the page answers.
func (j *job) get(path string) string {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(j.t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", j.url+path, nil)
	if err != nil {
		j.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		j.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		j.t.Fatalf("%s: %s, %v: %s", path, res.Status, err, b)
	}
	return string(b)
}

// A tab shows the page of a job.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu   sync.Mutex
	said []string // what the console has got, and what has been loaded from elsewhere
}

// open loads the page in a tab of its own, which at the end of the test must have put nothing on the console and loaded
// nothing from elsewhere.
func open(t *testing.T, j *job) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	p := &tab{t: t, ctx: ctx}
	t.Cleanup(func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, s := range p.said {
			t.Error(s)
		}
	})
	say := func(format string, args ...any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.said = append(p.said, fmt.Sprintf(format, args...))
	}
	if err := chromedp.Listen(ctx, func(e any) {
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			say("exception: %v", e.ExceptionDetails)
		case *runtime.EventConsoleAPICalled:
			say("console: %s", e.Type)
		case *log.EventEntryAdded:
			say("console: %s: %s (%s)", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		case *network.EventRequestWillBeSent:
			if u := e.Request.URL; !strings.HasPrefix(u, j.url) && !strings.HasPrefix(u, "data:") {
				say("the page loads %s", u)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	call(p, network.Enable, network.EnableParams{})
	p.do(chromedp.Navigate(j.url))
	p.until(`document.querySelector("#rows tbody tr")`)
	return p
}

// do does something in the tab, within limit.
func (p *tab) do(a chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	if err := chromedp.Do(ctx, a); err != nil {
		p.t.Fatal(err)
	}
}

// call gives the browser a command of its protocol.
func call[P, R any](p *tab, c cdp.Command[P, R], params P) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	}))
}

// value is that of an expression, or of a promise.
func value[T any](p *tab, script string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	yes := true
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, func(e *runtime.EvaluateParams) { e.AwaitPromise = &yes }))
	if err != nil {
		p.t.Fatalf("%s: %v", script, err)
	}
	return v
}

// until waits for an expression to be true after a change of the page. chromedp's own Poll makes a function of a text, which
// the policy of the page forbids.
func (p *tab) until(what string) {
	p.t.Helper()
	if !value[bool](p, fmt.Sprintf(`new Promise(ok => {
		const end = (how) => { watch.disconnect(); ok(how); };
		const look = () => { if (%s) end(true); };
		const watch = new MutationObserver(look);
		watch.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
		setTimeout(() => end(false), %d);
		look();
	})`, what, (limit-10*time.Second).Milliseconds())) {
		p.t.Fatalf("never so: %s; the page is\n%s", what, p.text("body"))
	}
}

// changed waits until a further view has been drawn.
func (p *tab) changed() {
	p.t.Helper()
	value[bool](p, `new Promise(ok => new MutationObserver((_, o) => { o.disconnect(); ok(true); }).observe($("rows"), { subtree: true, childList: true }))`)
}

func (p *tab) text(selector string) string {
	p.t.Helper()
	return value[string](p, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// is fails the test if an expression is not true.
func (p *tab) is(what string) {
	p.t.Helper()
	if !value[bool](p, "!!("+what+")") {
		p.t.Errorf("not so: %s; the page is\n%s", what, p.text("body"))
	}
}

// keys presses keys. The text of one goes with its being pressed, so that a page which takes the key for something else can
// keep the text out of fields; chromedp's KeyEvent sends it as if there had been no answer.
func (p *tab) keys(keys ...string) {
	p.t.Helper()
	for _, k := range keys {
		for _, r := range k {
			events := kb.Encode(r)
			if len(events) == 3 {
				events[0].Text = events[1].Text
			}
			call(p, input.DispatchKeyEvent, *events[0])
			call(p, input.DispatchKeyEvent, *events[len(events)-1])
		}
	}
}

// table is the rows of a table, by the names of columns.
func (p *tab) table(id string) []map[string]string {
	p.t.Helper()
	return value[[]map[string]string](p, fmt.Sprintf(`[...$(%q).tBodies[0].rows].map(tr => Object.fromEntries([...tr.cells].map((c, i) => [$(%[1]q).tHead.rows[0].cells[i].textContent, c.textContent])))`, id))
}

// series are the samples of /metrics, by name and labels without job_id and host.
func series(t *testing.T, text string) map[string]float64 {
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(line, "{")
		labels, value, ok2 := strings.Cut(rest, "} ")
		if strings.HasPrefix(line, "#") {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if !ok || !ok2 || err != nil {
			t.Fatalf("/metrics has %q", line)
		}
		kept := slices.DeleteFunc(strings.Split(labels, ","), func(l string) bool { return strings.HasPrefix(l, "job_id=") || strings.HasPrefix(l, "host=") })
		all[strings.TrimPrefix(name, "argon_")+" "+strings.ReplaceAll(strings.Join(kept, " "), `"`, "")] = v
	}
	return all
}

// shows reports whether a cell has a number, of which there may be three digits and a unit.
func shows(cell string, want float64) bool {
	unit := 1.0
	if i := strings.IndexAny(cell, "kMGTP"); i >= 0 {
		unit = math.Pow(1000, float64(1+strings.Index("kMGTP", cell[i:])))
		cell = cell[:i]
	}
	got, err := strconv.ParseFloat(cell, 64)
	return err == nil && math.Abs(got*unit-want) <= want*0.005 && (unit > 1 || got == want)
}

// differs is what of the page's tables is not as /metrics has it, "" if all is.
func differs(t *testing.T, p *tab, metrics map[string]float64) string {
	rows, pairs := p.table("rows"), p.table("pairs")
	states := map[string]float64{}
	for r, row := range rows {
		rank := fmt.Sprint(" rank=", r)
		states[row["state"]]++
		name, _, _ := strings.Cut(row["ranks"], " (")
		if name != fmt.Sprint("rank ", r) || !shows(row["sent"], metrics["messages_sent_total"+rank]) || !shows(row["handled"], metrics["messages_handled_total"+rank]) ||
			row["sent/s"] != "0" || row["handled/s"] != "0" {
			return fmt.Sprintf("row %d is %v, of %v", r, row, metrics)
		}
	}
	n := 0
	for name, v := range metrics {
		if state, ok := strings.CutPrefix(name, "ranks state="); ok && v != states[state] {
			return fmt.Sprintf("%v ranks are in state %q, and on the page %v", v, state, states)
		}
		if strings.HasPrefix(name, "peer_messages_total") {
			n++
		}
	}
	for _, pair := range pairs {
		labels := fmt.Sprintf(" %s peer=%s", strings.Replace(pair["from"], " ", "=", 1), strings.TrimPrefix(pair["to"], "rank "))
		if !shows(pair["messages and accesses"], metrics["peer_messages_total"+labels]) || !shows(pair["bytes"], metrics["peer_bytes_total"+labels]) || pair["a second"] != "0" || pair["bytes/s"] != "0" {
			return fmt.Sprintf("a pair is %v, of %v", pair, metrics)
		}
	}
	if n == 0 || n != len(pairs) {
		return fmt.Sprintf("there are %d pairs, and %d on the page", n, len(pairs))
	}
	return ""
}

// TestPage: the values on the page are those of /metrics, and keys do what its buttons say.
func TestPage(t *testing.T) {
	j := start(t, "-monitor", "-n", "4", os.Args[0])
	p := open(t, j)
	j.settled()
	// A view may be of the moment before.
	for end := time.Now().Add(limit); ; p.changed() {
		wrong := differs(t, p, series(t, j.get("metrics")))
		if wrong == "" {
			break
		}
		if time.Now().After(end) {
			t.Fatal(wrong)
		}
	}
	if rows := p.table("rows"); len(rows) != 4 || shows(rows[3]["sent"], 0) || rows[3]["sent"] == rows[2]["sent"] || !strings.Contains(rows[0]["what for"], "standard input") {
		t.Errorf("the rows are %v", rows)
	}
	p.is(`document.title.endsWith(": 4 ranks") && $("job").textContent === document.title`)
	p.is(`$("hosts").tBodies[0].rows.length === 1 && $("hosts").tBodies[0].rows[0].cells[0].textContent === "localhost"`)

	keys(t, p, j)
	narrow(p)
	schemes(t, p)

	j.end()
	p.until(`$("state").textContent.startsWith("the job has ended")`)
}

func keys(t *testing.T, p *tab, j *job) {
	p.keys("r")
	p.until(`$("report").textContent.includes("reads standard input")`)
	p.is(`document.activeElement === $("report")`)
	got, want := p.text("#report"), j.get("report")
	if cause, _, _ := strings.Cut(want, "\n"); !strings.HasPrefix(got, cause+"\n") {
		t.Errorf("the report is %q, and that of the server %q", got, want)
	}
	p.keys(kb.Escape)
	p.is(`$("report").hidden`)

	p.keys("/")
	p.is(`document.activeElement === $("filter")`)
	p.keys("rank 2p")
	p.is(`$("filter").value === "rank 2p" && $("report").hidden && $("rows").tBodies[0].rows.length === 0`)
	p.keys(kb.Backspace)
	p.is(`$("rows").tBodies[0].rows.length === 1 && $("rows").tBodies[0].rows[0].cells[0].textContent.startsWith("rank 2")`)
	p.keys(kb.Escape)
	p.is(`$("filter").value === "" && $("rows").tBodies[0].rows.length === 4`)

	p.keys("p")
	p.is(`source === null && $("state").textContent.startsWith("paused") && $("pause").textContent === "Go on (p)"`)
	p.keys("p")
	p.changed()
	p.is(`source && !$("state").textContent.includes("paused")`)

	// From the filter on, Tab comes to the heads of tables.
	p.keys("/")
	for range 40 {
		p.keys(kb.Tab)
		if value[string](p, `document.activeElement.closest("#rows") ? document.activeElement.textContent : ""`) == "sent" {
			break
		}
	}
	p.is(`getComputedStyle(document.activeElement).outlineStyle !== "none"`)
	p.keys(kb.Enter)
	p.is(`document.activeElement.parentNode.getAttribute("aria-sort") === "descending"`)
	if rows := p.table("rows"); len(rows) != 4 || !strings.HasPrefix(rows[0]["ranks"], "rank 3") || !strings.HasPrefix(rows[2]["ranks"], "rank 1") {
		t.Errorf("by messages sent, the rows are %v", rows)
	}
	p.changed() // keeps the focus
	p.keys(kb.Enter)
	p.is(`document.activeElement.parentNode.getAttribute("aria-sort") === "ascending"`)
	value[bool](p, `$("rows").tHead.rows[0].cells[0].firstChild.click(), true`)
	p.is(`$("rows").tHead.rows[0].cells[0].getAttribute("aria-sort") === "ascending"`)
}

// narrow: nothing is wider than a small screen, and each value has the name of its column.
func narrow(p *tab) {
	for _, width := range []int64{320, 600, 1280} {
		call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 640, DeviceScaleFactor: 1, Mobile: width < 700})
		p.keys("r")
		p.until(`$("report").textContent.includes("reads standard input")`)
		p.is(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`)
		if width < 700 {
			p.is(`[...document.querySelectorAll("#rows td, #pairs td")].every(c => getComputedStyle(c).display !== "none")`)
			p.is(`getComputedStyle($("rows").tBodies[0].rows[0].cells[5], "::before").content.includes("sent")`)
			p.is(`getComputedStyle($("pairs").tBodies[0].rows[0].cells[4], "::before").content.includes("bytes")`)
		}
		p.keys(kb.Escape)
	}
	call(p, emulation.ClearDeviceMetricsOverride, cdp.Empty{})
}

// schemes: in both the text stands out (WCAG 2.2, 1.4.3).
func schemes(t *testing.T, p *tab) {
	for _, scheme := range []string{"light", "dark"} {
		call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		got := value[[]struct {
			Name  string
			Ratio float64
			Dark  bool
		}](p, `(() => {
			const probe = document.body.appendChild(document.createElement("div"));
			const rgb = c => { probe.style.color = c; return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number); };
			const light = c => rgb(c).map(x => x / 255).map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4).reduce((s, x, i) => s + x * [0.2126, 0.7152, 0.0722][i], 0);
			const back = light("Canvas");
			const all = ["CanvasText", "var(--dim)", "var(--bar)", "var(--bad)"].map(Name => {
				const l = light(Name);
				return { Name, Ratio: (Math.max(l, back) + 0.05) / (Math.min(l, back) + 0.05), Dark: back < 0.2 };
			});
			probe.remove();
			return all;
		})()`)
		if len(got) != 4 {
			t.Fatalf("%s: %v", scheme, got)
		}
		for _, c := range got {
			least := 4.5
			if c.Name == "var(--bar)" {
				least = 3 // of lines around what has the focus: 1.4.11
			}
			if c.Dark != (scheme == "dark") || c.Ratio < least {
				t.Errorf("%s: %s is %.1f times as bright or dark as the page, dark %v", scheme, c.Name, c.Ratio, c.Dark)
			}
		}
	}
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
}

// TestRecording: gasrun monitor shows each view that a job has written.
func TestRecording(t *testing.T) {
	file := filepath.Join(t.TempDir(), "job.jsonl")
	j := start(t, "-monitor", "-monitor-record", file, "-n", "3", os.Args[0])
	j.settled()
	for range 3 {
		j.get("metrics") // a view more, which is written, too
	}
	j.end()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		View struct {
			Rows []struct {
				State string
				Sent  float64
			}
		}
		Report string
	}
	var views []line
	for text := range bytes.Lines(b) {
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		views = append(views, l)
	}
	if len(views) < 3 {
		t.Fatalf("%d views in the recording", len(views))
	}
	r := start(t, "monitor", file)
	p := open(t, r)
	p.keys("r")
	for n, v := range views {
		p.until(fmt.Sprintf(`$("state").textContent.startsWith("view %d of %d,")`, n+1, len(views)))
		rows := p.table("rows")
		if len(rows) != len(v.View.Rows) {
			t.Fatalf("view %d has %d rows, in the file %d", n, len(rows), len(v.View.Rows))
		}
		for i, row := range rows {
			if w := v.View.Rows[i]; row["state"] != w.State || !shows(row["sent"], w.Sent) {
				t.Errorf("view %d has %v for rank %d, in the file %v", n, row, i, w)
			}
		}
		if got := p.text("#report"); got != strings.TrimRight(v.Report, "\n") && got != v.Report {
			t.Errorf("view %d: the report is %q, in the file %q", n, got, v.Report)
		}
		p.keys(kb.ArrowRight)
	}
	p.keys(kb.ArrowLeft)
	p.until(fmt.Sprintf(`$("state").textContent.startsWith("view %d of ")`, len(views)-1))
	value[bool](p, `$("at").focus(), true`)
	p.keys(kb.Home)
	p.until(`$("state").textContent.startsWith("view 1 of ")`)
	p.is(`$("pause").hidden && !$("time").hidden`)
}

// TestSimulation: thousands of simulated ranks have rows, and views follow each other.
func TestSimulation(t *testing.T) {
	needed(t)
	if err := build("examples/ring"); err != nil {
		t.Fatal(err)
	}
	j := start(t, "-monitor", "-conduit", "sim", "-n", "4096", "./ring", "-laps", "100000")
	p := open(t, j)
	p.until(`/ 256 of the 4096/.test($("hosts").tBodies[0].textContent + $("state").textContent) || view.total.state.includes("waits")`)
	p.changed()
	p.is(`view.total.ranks === 256 && view.total.sent > 0`)
}

// TestPicture writes the picture of the documents, with -write.
func TestPicture(t *testing.T) {
	if !*write {
		t.Skip("skipped: without -write")
	}
	if err := build("examples/heat"); err != nil {
		t.Fatal(err)
	}
	j := start(t, "-monitor", "-hosts", "localhost:2,localhost:2", "./heat", "-steps", "1000000", "-o", "")
	p := open(t, j)
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 1200, Height: 800, DeviceScaleFactor: 1})
	p.until(`view.at > 5e9 && view.rows.length === 4 && view.pairs?.[0].byteRate > 0 && view.rows.every(r => r.doing)`)
	b, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if b, err = small(b); err != nil || len(b) > 100<<10 {
		t.Fatalf("the picture has %d bytes, %v", len(b), err)
	}
	if err := os.WriteFile(filepath.Join(root, "docs/monitor.png"), b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// small is a picture with the 256 colours that are nearest to what it has, of which text in grey has few more.
func small(b []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	var most color.Palette
	seen := map[color.Color]bool{}
	at := from.Bounds()
	for y := at.Min.Y; y < at.Max.Y; y++ {
		for x := at.Min.X; x < at.Max.X && len(most) < 256; x++ {
			if c := from.At(x, y); !seen[c] {
				seen[c] = true
				most = append(most, c)
			}
		}
	}
	to := image.NewPaletted(at, most)
	draw.Draw(to, at, from, at.Min, draw.Src)
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to)
	return out.Bytes(), err
}
