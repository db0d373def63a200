package delivery_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// leaveStore leaves this number of traces. Some are in each of two segments, and the
// others in a log.
const storeTraces, tracesPerSegment = 60, 25

// spansPerDamagedTrace is the number of spans of a trace of TestDamagedStore: a segment has two
// blocks.
const spansPerDamagedTrace = 200

// roundsPerStore is the number of rounds of TestDamagedStore with the same store.
const roundsPerStore = 25

// deletedTraces are traces of all blocks of both segments: so few that the segments are not written
// again, and none of the log, of which a segment would be written.
var deletedTraces = []int{0, 22, 30, 47}

// TestDamagedStore damages one file of the store of a killed program, in which deletions are
// pending: flips a bit, truncates, deletes or overwrites it. The program starts every time. It
// returns no span that was not stored, and no deleted one. A response is complete and equals the
// response of the sound store, or it says that it is incomplete, and so do the log, the metrics and
// the status.
func TestDamagedStore(t *testing.T) {
	rounds, seed := soak.Rounds(t, 25, 4), soak.Seed(t)
	kinds := map[string]int{}
	var store *soundStore
	for round := range rounds {
		if round%roundsPerStore == 0 {
			store = leaveSoundStore(t)
		}
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, uint64(round)))
			name := store.files[rnd.IntN(len(store.files))]
			dir := store.copyFor(t)
			what := damageFile(t, rnd, filepath.Join(dir, name))
			kinds[strings.Fields(what)[0]]++
			t.Logf("%s: %s", name, what)
			checkDamagedStore(t, runDamagedStore(t, dir), store)
		})
	}
	t.Logf("kinds of damage: %v", kinds)
	http.DefaultClient.CloseIdleConnections()
}

// checkDamagedStore reads a damaged store, and ends its program.
func checkDamagedStore(t *testing.T, p *harness.Process, sound *soundStore) {
	t.Helper()
	lost, silent := compareTraces(t, readTraces(t, p), sound.traces)
	incomplete := checkAnswers(t, sound.questions, askAll(t, p, sound.questions), sound.answers)
	t.Logf("%d spans lost, %d answers incomplete, %d reports in the log", lost, incomplete, len(problems(p)))
	if silent > 0 {
		t.Errorf("%d spans are missing in answers that do not say so", silent)
	}
	if lost > 0 || incomplete > 0 {
		checkReports(t, p)
	}
	checkPanics(t, p)
	p.Kill()
}

// soundStore is the data directory of a killed program, and what it answers before it is damaged.
type soundStore struct {
	dir       string
	files     []string // to be damaged, relative to dir
	traces    []foundTrace
	questions []*storeQuestion
	answers   []answer
}

func runDamagedStore(t *testing.T, dir string, more ...string) *harness.Process {
	t.Helper()
	return harness.RunAllInOne(t, dir, append(more, "exporters::disk::reserve=0")...)
}

func traceName(i int) string { return fmt.Sprintf("%032x", i+1) }

// leaveStore runs a program that stores traces of a number of spans, deletes some, and is killed.
// It returns the data directory.
func leaveStore(t *testing.T, began time.Time, spans int, deleted ...int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	p := runDamagedStore(t, dir, "exporters::disk::allow_delete=true",
		fmt.Sprintf("exporters::disk::memtable::max_spans=%d", tracesPerSegment*spans))
	for i := range storeTraces {
		p.PostJSON(storedTrace(i, began, spans))
	}
	harness.Poll(t, "two segments", func() bool {
		return harness.Metrics(t, p.AdminURL())[`tracing_disk_segments{component="disk",kind="exporter"}`] == 2
	})
	args := []string{"delete", "--yes", "--admin", p.AdminURL()}
	for _, i := range deleted {
		args = append(args, "--trace", traceName(i))
	}
	if code, _, stderr := inprocess.RunCommand(t, args...); code != 0 {
		t.Fatal(stderr)
	}
	awaitCheckpoint(t, dir, (storeTraces-2*tracesPerSegment)*spans)
	p.Kill()
	return dir
}

// awaitCheckpoint waits until the list of logs says how many spans the last log has. Before, damage
// to its last record may look like a write that the kill interrupted, which was not acknowledged.
func awaitCheckpoint(t *testing.T, dir string, spans int) {
	t.Helper()
	harness.Poll(t, "checkpoint of the log", func() bool {
		list, err := os.ReadFile(filepath.Join(dir, "disk/log/logs.list"))
		return err == nil && strings.Contains(string(list), fmt.Sprintf(" %d ", spans))
	})
}

// leaveSoundStore leaves a store with deletions, and starts the program with a copy for the
// answers.
func leaveSoundStore(t *testing.T) *soundStore {
	t.Helper()
	began := time.Now().Add(-10 * time.Minute) // answers do not end with the present time
	s := &soundStore{dir: leaveStore(t, began, spansPerDamagedTrace, deletedTraces...)}
	s.listFiles(t)
	p := runDamagedStore(t, s.copyFor(t))
	s.traces, s.questions = readTraces(t, p), storeQuestions(began)
	s.answers = askAll(t, p, s.questions)
	p.Kill()
	s.checkSound(t)
	return s
}

func (s *soundStore) listFiles(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(s.dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != "LOCK" && !strings.HasPrefix(d.Name(), "spare") && !strings.Contains(name, "queue") {
			s.files = append(s.files, strings.TrimPrefix(name, s.dir))
		}
		return err
	})
	if err != nil || len(s.files) < 6 {
		t.Fatalf("files %v, %v", s.files, err)
	}
}

func (s *soundStore) copyFor(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(s.dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// checkSound checks that the store has all spans but the deleted ones, and that its answers are
// complete.
func (s *soundStore) checkSound(t *testing.T) {
	t.Helper()
	for i, tr := range s.traces {
		want := spansPerDamagedTrace
		if slices.Contains(deletedTraces, i) {
			want = 0
		}
		if len(tr.spans) != want {
			t.Fatalf("trace %d of the sound store has %d spans", i, len(tr.spans))
		}
	}
	for i, a := range s.answers {
		if !a.complete {
			t.Fatalf("the answer of the sound store to %s is incomplete", s.questions[i])
		}
		for name, n := range a.counts {
			if n == 0 && !strings.Contains(name, "errors") && !strings.Contains(name, "selected") {
				t.Fatalf("the sound store counts none of %s in %s", name, s.questions[i])
			}
		}
		if s.questions[i].counts != nil && len(a.counts) == 0 {
			t.Fatalf("the sound store has no answer to %s", s.questions[i])
		}
	}
}

// storedTrace returns an OTLP request with a trace of n spans: a request to a service and its calls
// of itself and of another one. Attributes and instances of services vary, so that segments have
// long columns of shapes and resources.
func storedTrace(i int, began time.Time, n int) string {
	spans := map[string][]string{} // by resource
	for j := range n {
		parent, kind := "", 2+j%2
		switch j {
		case 0:
		case 1:
			parent = fmt.Sprintf("%016x", 1)
		default:
			parent = fmt.Sprintf("%016x", j-j%2)
			kind = 3 - j%2
		}
		mixed := uint32(i*n+j+1) * 2654435761 >> 16
		resource := fmt.Sprintf(`{"key":"service.name","value":{"stringValue":"%s"}},{"key":"instance","value":{"intValue":"%d"}}`,
			[]string{"shop", "bank"}[j%2], mixed%8)
		attributes := fmt.Sprintf(`{"key":"order","value":{"stringValue":"%x"}}`, i*7919+j*104729)
		for bit, key := range []string{"amount", "user", "retry"} {
			if mixed>>(3+bit)%2 == 1 {
				attributes += fmt.Sprintf(`,{"key":"%s","value":{"intValue":"%d"}}`, key, mixed%16)
			}
		}
		start := began.UnixNano() + int64(i)*int64(10*time.Millisecond) + int64(j)*int64(time.Microsecond)
		duration := int64(n-j) * int64(i+1) * int64(7*time.Microsecond)
		spans[resource] = append(spans[resource], fmt.Sprintf(`{"traceId":"%s","spanId":"%016x","parentSpanId":"%s","kind":%d,
			"name":"pay %d","startTimeUnixNano":"%d","endTimeUnixNano":"%d","status":{"code":%d},"attributes":[%s]}`,
			traceName(i), j+1, parent, kind, i, start, start+duration, j%10/9*2, attributes))
	}
	var resources []string
	for _, attributes := range slices.Sorted(maps.Keys(spans)) {
		resources = append(resources, fmt.Sprintf(`{"resource":{"attributes":[%s]},"scopeSpans":[{"spans":[%s]}]}`,
			attributes, strings.Join(spans[attributes], ",")))
	}
	return `{"resourceSpans":[` + strings.Join(resources, ",") + `]}`
}

// foundTrace is what a program answers to a request for a trace.
type foundTrace struct {
	spans      map[string]string // by id: what was stored
	incomplete bool              // the response says so
}

// readTraces requests every trace by id, and all of them by a search, which finds the same.
func readTraces(t *testing.T, p *harness.Process) (traces []foundTrace) {
	t.Helper()
	all := map[string]string{}
	for i := range storeTraces {
		status, body := harness.Fetch(t, p.QueryURL()+"/api/traces/"+traceName(i))
		if status != http.StatusOK && status != http.StatusNotFound {
			t.Errorf("trace %d: status %d: %.300s", i, status, body)
		}
		tr := foundTrace{map[string]string{}, strings.Contains(string(body), "result is incomplete") ||
			status == http.StatusNotFound && strings.Contains(string(body), "the part of the store that can be read")}
		if status == http.StatusOK {
			tr.spans = spanContents(t, body)
		}
		maps.Copy(all, tr.spans)
		traces = append(traces, tr)
	}
	status, body := harness.Fetch(t, p.QueryURL()+"/api/traces?service=shop&limit=1000&start=1")
	if status != http.StatusOK {
		t.Fatalf("search: status %d: %.300s", status, body)
	}
	if found := spanContents(t, body); !maps.Equal(found, all) {
		t.Errorf("%d spans are found by a search, %d by id", len(found), len(all))
	}
	if status, body := harness.Fetch(t, p.AdminURL()+"/readyz"); status != http.StatusOK {
		t.Errorf("not ready: %d %s", status, body)
	}
	return traces
}

// spanContents returns the content of the spans in a response by trace and span id.
func spanContents(t *testing.T, body []byte) map[string]string {
	t.Helper()
	contents := map[string]string{}
	for _, tr := range decode[[]harness.UITrace](t, decode[harness.UIAnswer](t, body).Data) {
		for _, s := range tr.Spans {
			id := s.TraceID + " " + s.SpanID
			if _, twice := contents[id]; twice {
				t.Errorf("span %s is found twice", id)
			}
			service := tr.Processes[s.ProcessID].ServiceName
			b, err := json.Marshal([]any{s.OperationName, s.StartTime, s.Duration, harness.TagStrings(s.Tags), service})
			if err != nil {
				t.Fatal(err)
			}
			contents[id] = string(b)
		}
	}
	return contents
}

// compareTraces compares what a damaged store returns with what the sound one does. It returns the
// number of spans that are missing, and of those that are missing without a message in the
// response.
func compareTraces(t *testing.T, got, want []foundTrace) (lost, silent int) {
	t.Helper()
	for i := range got {
		for id, content := range got[i].spans {
			if content != want[i].spans[id] {
				t.Errorf("span %s is %s, stored was %q", id, content, want[i].spans[id])
			}
		}
		missing := len(want[i].spans) - len(got[i].spans)
		lost += missing
		if !got[i].incomplete {
			silent += missing
		}
	}
	return lost, silent
}

// checkReports checks that the metrics of a damaged store say so, and waits until the log and the
// status do: the log is read while it is written, and the store checks once a second.
func checkReports(t *testing.T, p *harness.Process) {
	t.Helper()
	harness.Poll(t, "damage in the log", func() bool { return len(problems(p)) > 0 })
	counted, metrics := 0.0, harness.Metrics(t, p.AdminURL())
	for _, name := range []string{"lost_spans", "lost_log_records", "damaged_reads", "quarantined_segments"} {
		counted += metrics["tracing_disk_"+name+`_total{component="disk",kind="exporter"}`]
	}
	if counted == 0 {
		t.Error("the metrics do not count the damage")
	}
	harness.Poll(t, "degraded store", func() bool { return isDegraded(t, p) })
}

// problems returns the warnings and errors that the store has logged.
func problems(p *harness.Process) (list []map[string]any) {
	return slices.DeleteFunc(p.LogLines(), func(line map[string]any) bool {
		return line["component"] != "disk" || line["level"] != "error" && line["level"] != "warn"
	})
}
