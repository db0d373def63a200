package delivery_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/test/harness"
)

// formatsVersion is the version whose files TestFormats writes with -update. The files of earlier
// versions stay as they are. A release that changes a format gets a new version here.
const formatsVersion = "0.1"

// The archives have this number of traces in the queue, and of spans in each trace.
const queuedTraces, spansPerStoredTrace = 5, 40

// TestFormats reads what earlier versions have left behind when they were killed: a store with
// segments, a log and a deletion, and a queue on disk. Nothing is missing, reported as damaged, or
// lost when the files are rewritten.
func TestFormats(t *testing.T) {
	if golden.Updating() {
		writeFormats(t, filepath.Join("testdata", "formats", formatsVersion+".tar.gz"))
	}
	archives, err := filepath.Glob("testdata/formats/*.tar.gz")
	if err != nil || len(archives) == 0 {
		t.Fatalf("archives %q, %v", archives, err)
	}
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			dir := t.TempDir()
			extractFormats(t, archive, dir)
			for _, start := range []string{"first", "second"} {
				checkOldStore(t, start, filepath.Join(dir, "store"))
			}
			checkOldQueue(t, filepath.Join(dir, "queue"))
		})
	}
	http.DefaultClient.CloseIdleConnections()
}

// checkOldStore reads the traces of leaveStore. The first one is deleted.
func checkOldStore(t *testing.T, start, dir string) {
	t.Helper()
	p := runDamagedStore(t, dir, "exporters::disk::retention::time=0")
	for i, tr := range readTraces(t, p) {
		if n := len(tr.spans); n != spansPerStoredTrace && (i > 0 || n > 0) || tr.incomplete {
			t.Errorf("%s start: trace %d has %d spans (incomplete: %v)", start, i, n, tr.incomplete)
		}
	}
	if list := problems(p); len(list) > 0 {
		t.Errorf("%s start: problems %v", start, list)
	}
	if code := p.Terminate(); code != 0 {
		t.Errorf("%s start: exit code %d", start, code)
	}
}

// checkOldQueue expects that a queue delivers the traces of leaveQueue.
func checkOldQueue(t *testing.T, dir string) {
	t.Helper()
	store := harness.RunAllInOne(t, t.TempDir(), "exporters::disk::retention::time=0")
	forwarder := harness.RunYAML(t, forwarderYAML(dir, store.OTLPHTTP()))
	for i := range queuedTraces {
		harness.Poll(t, "queued trace", func() bool {
			status, body := harness.Fetch(t, store.QueryURL()+"/api/traces/"+traceName(i))
			return status == http.StatusOK && strings.Count(string(body), fmt.Sprintf(`"operationName":"pay %d"`, i)) == spansPerStoredTrace
		})
	}
	lost, ok := harness.Metrics(t, forwarder.AdminURL())[`tracing_queue_lost_batches_total{component="otlphttp"}`]
	if !ok || lost != 0 {
		t.Errorf("%v batches of the queue are lost (counted: %v)", lost, ok)
	}
	forwarder.Terminate()
	store.Terminate()
}

// forwarderYAML is the configuration of a process that queues spans on disk and sends them to a
// collector.
func forwarderYAML(dir, collector string) string {
	return fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: "localhost:0"}}}}
exporters:
  otlphttp:
    endpoint: "http://%s"
    retry_on_failure: {max_elapsed_time: 0s, initial_interval: 100ms, max_interval: 100ms}
    sending_queue: {storage: disk}
extensions: {admin: {endpoint: "localhost:0"}}
service:
  data_dir: %q
  extensions: [admin]
  pipelines: {traces: {receivers: [otlp], exporters: [otlphttp]}}
`, collector, dir)
}

// writeFormats writes an archive with the files of leaveStore and leaveQueue.
func writeFormats(t *testing.T, file string) {
	t.Helper()
	forwarder := t.TempDir()
	p := harness.RunYAML(t, forwarderYAML(forwarder, "localhost:1"))
	p.AwaitReady()
	began := time.Now()
	for i := range queuedTraces {
		p.PostJSON(storedTrace(i, began, spansPerStoredTrace))
	}
	p.Kill()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	store := leaveStore(t, began, spansPerStoredTrace, 0)
	err = errors.Join(addFolder(w, "store", store), addFolder(w, "queue", forwarder), w.Close(), z.Close(), f.Close())
	if err != nil {
		t.Fatal(err)
	}
}

// addFolder adds the files of a folder to an archive, except spare log files.
func addFolder(w *tar.Writer, name, dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), "spare") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		h := tar.Header{Name: filepath.ToSlash(filepath.Join(name, below)), Size: int64(len(content)), Mode: 0o600, Typeflag: tar.TypeReg}
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
}

// extractFormats extracts an archive of writeFormats.
func extractFormats(t *testing.T, file, dir string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}
