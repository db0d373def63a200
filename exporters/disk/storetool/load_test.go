package storetool

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"github.com/tracing-backend/tracing/pipeline/soak"
)

// receiver is an OTLP receiver that acknowledges requests, or answers what a test wants.
type receiver struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	spans    spanTexts
	requests int
	// authorization is the header of the last request.
	authorization string
	answer        func(w http.ResponseWriter, request int) bool // whether it has answered; nil acknowledges all
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	r.authorization = req.Header.Get("Authorization")
	if r.answer != nil && r.answer(w, r.requests) {
		return
	}
	traces := ptraceotlp.NewExportRequest()
	if err == nil {
		err = traces.UnmarshalProto(body)
	}
	if err != nil || req.URL.Path != "/v1/traces" {
		r.t.Errorf("request %s: %v", req.URL, err)
	}
	r.spans.tenant = req.Header.Get("x-tenant")
	r.spans.add(r.t, traces.Traces())
	answer, err := ptraceotlp.NewExportResponse().MarshalProto()
	if err != nil {
		r.t.Error(err)
	}
	w.Write(answer) //nolint:errcheck // the client notices
}

// received returns the spans that were acknowledged, sorted.
func (r *receiver) received() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.spans.list))
}

// exportedStore returns the folder of an export, and the spans in it.
func exportedStore(t *testing.T) (dir string, want []string) {
	t.Helper()
	s := mixedStore(t)
	want = s.spans(nil)
	dir = filepath.Join(t.TempDir(), "out")
	mustRun(t, "export", s.unlock(), "--format", "otlp-proto", "--output", dir)
	return dir, want
}

// A load sends every span once with its tenant, though the receiver is overloaded at times.
func TestLoad(t *testing.T) {
	t.Parallel()
	dir, want := exportedStore(t)
	r := newReceiver(t)
	r.answer = func(w http.ResponseWriter, request int) bool {
		if request%5 == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	mustRun(t, "load", dir, "--endpoint", r.URL)
	if got := r.received(); !slices.Equal(got, want) {
		t.Errorf("received %d spans, want %d", len(got), len(want))
	}
	if again := mustRun(t, "load", dir, "--endpoint", r.URL); !strings.Contains(again, "sent 0 requests") {
		t.Errorf("second load: %s", again)
	}
}

// A load that stopped continues after the last round that was acknowledged.
func TestLoadContinues(t *testing.T) {
	t.Parallel()
	dir, want := exportedStore(t)
	r := newReceiver(t)
	r.answer = func(w http.ResponseWriter, request int) bool {
		if request == 4 {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		return false
	}
	code, _, stderr := run(t, "load", dir, "--endpoint", r.URL, "--parallel", "1")
	if code != 1 || !strings.Contains(stderr, "403") || !strings.Contains(stderr, "rerun the command") {
		t.Fatalf("load: %d %s", code, stderr)
	}
	journal, err := os.OpenFile(filepath.Join(dir, journalName), os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	_, err = journal.WriteString("123") // a line that was not written completely
	check(t, err)
	check(t, journal.Close())
	mustRun(t, "load", dir, "--endpoint", r.URL, "--parallel", "1")
	if got := r.received(); !slices.Equal(got, want) {
		t.Errorf("received %d spans, want %d", len(got), len(want))
	}
}

func TestLoadRejects(t *testing.T) {
	soak.SkipIfRaced(t)
	dir, _ := exportedStore(t)
	r := newReceiver(t)
	f := func(code int, want string, args ...string) {
		t.Helper()
		if got, _, stderr := run(t, append([]string{"load"}, args...)...); got != code || !strings.Contains(stderr, want) {
			t.Errorf("%v: %d %s", args, got, stderr)
		}
	}
	f(2, "expected one folder")
	f(2, `--endpoint: "localhost:4318" is not a valid URL`, dir, "--endpoint", "localhost:4318")
	f(2, "--endpoint: must not contain a password", dir, "--endpoint", "http://user:secret@localhost:4318")
	f(2, `"a b: c" is not a valid header`, dir, "--header", "a b: c")
	f(2, `--tenant-header: "a b" is not a valid header name`, dir, "--tenant-header", "a b")
	f(2, "--parallel must be between", dir, "--parallel", "0")
	f(1, "has no .pb files", t.TempDir())

	rejecting := ptraceotlp.NewExportResponse()
	rejecting.PartialSuccess().SetRejectedSpans(3)
	rejecting.PartialSuccess().SetErrorMessage("no")
	answer, err := rejecting.MarshalProto()
	check(t, err)
	r.answer = func(w http.ResponseWriter, _ int) bool {
		w.Write(answer) //nolint:errcheck // the client notices
		return true
	}
	f(1, "receiver rejected 3 spans", dir, "--endpoint", r.URL)

	r.answer = nil
	f(1, "is of a load to "+r.URL, dir, "--endpoint", "http://localhost:1")
	check(t, os.WriteFile(filepath.Join(dir, journalName), []byte(r.URL+"/v1/traces\nx y\n"), 0o600))
	f(1, "line 2 is damaged", dir, "--endpoint", r.URL)

	damaged := t.TempDir()
	check(t, os.WriteFile(filepath.Join(damaged, "a.pb"), []byte("\xff\xff\xff\xff"), 0o600))
	f(1, "exceeds the maximum", damaged, "--endpoint", r.URL)
	check(t, os.WriteFile(filepath.Join(damaged, "a.pb"), []byte("\x00\x00\x00\x05abc"), 0o600))
	f(1, "reading the request at offset 0", damaged, "--endpoint", r.URL)
}

// A load sends headers only to the receiver, and does not write credentials to the journal.
func TestLoadKeepsSecrets(t *testing.T) {
	dir, want := exportedStore(t)
	r, other := newReceiver(t), newReceiver(t)
	r.answer = func(w http.ResponseWriter, _ int) bool {
		w.Header().Set("Location", other.URL+"/v1/traces")
		w.WriteHeader(http.StatusFound)
		return true
	}
	args := []string{"load", dir, "--endpoint", r.URL + "?key=secret", "--header", "Authorization: Bearer secret"}
	if code, _, stderr := run(t, args...); code != 1 || !strings.Contains(stderr, "receiver responded with 302") || other.requests > 0 {
		t.Errorf("redirected load: %d %s, %d requests to the other receiver", code, stderr, other.requests)
	}
	r.answer = nil
	mustRun(t, args...)
	if got := r.received(); !slices.Equal(got, want) || r.authorization != "Bearer secret" {
		t.Errorf("received %d spans with the header %q", len(got), r.authorization)
	}
	journal, err := os.ReadFile(filepath.Join(dir, journalName))
	check(t, err)
	if !strings.HasPrefix(string(journal), r.URL+"/v1/traces?key=***\n") {
		t.Errorf("journal %s", journal)
	}
}

// A load does not repeat requests to a receiver whose certificate is not trusted.
func TestLoadVerifiesTheReceiver(t *testing.T) {
	soak.SkipIfRaced(t)
	dir, _ := exportedStore(t)
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	if code, _, stderr := run(t, "load", dir, "--endpoint", s.URL); code != 1 || !strings.Contains(stderr, "failed to verify certificate") {
		t.Errorf("load: %d %s", code, stderr)
	}
}
