package storetool

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/tracing-backend/tracing/pipeline/soak"
)

// arrowRow is a row as Arrow returns it: a map is a list of pairs.
type arrowRow struct {
	TraceID string  `json:"trace_id"`
	SpanID  string  `json:"span_id"`
	Parent  *string `json:"parent_span_id"`
	Service string  `json:"service_name"`
	Name    string  `json:"name"`
	Nanos   int64   `json:"duration_ns"`
	Attrs   []pair  `json:"attributes"`
	Events  []struct {
		Name  string `json:"name"`
		Attrs []pair `json:"attributes"`
	} `json:"events"`
}

type pair struct{ Key, Value string }

// Apache Arrow, an independent implementation of Parquet, reads the same rows as the library that
// wrote them. The reader is a separate module in testdata; the test downloads its dependencies.
func TestArrowReadsParquet(t *testing.T) {
	t.Parallel()
	soak.SkipIfRaced(t)
	if testing.Short() {
		t.Skip("downloads and compiles Apache Arrow; make test-long runs it")
	}
	os.ReadDir("testdata/arrowcheck") //nolint:errcheck // so that Go repeats the test when the reader has changed
	path := filepath.Join(t.TempDir(), "arrowcheck")
	if out, err := arrowGo("mod", "download"); err != nil {
		t.Fatalf("downloading Apache Arrow: %v %s", err, out)
	}
	if out, err := arrowGo("build", "-o", path, "."); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	dir := mixedStore(t).unlock()
	out := filepath.Join(t.TempDir(), "out")
	mustRun(t, "export", dir, "--format", "parquet", "--output", out)
	files := filesOf(t, out)
	text, err := exec.Command(path, files...).Output()
	check(t, err)
	dec := json.NewDecoder(bytes.NewReader(text))
	for _, file := range files {
		rows, err := parquet.ReadFile[parquetSpan](file)
		check(t, err)
		for i := range rows {
			var got arrowRow
			check(t, dec.Decode(&got))
			compareRows(t, &got, &rows[i])
		}
	}
	if dec.More() {
		t.Error("Arrow reads more rows than were written")
	}
}

func compareRows(t *testing.T, got *arrowRow, want *parquetSpan) {
	t.Helper()
	same := got.TraceID == want.TraceID && got.SpanID == want.SpanID && (got.Parent == nil) == (want.ParentSpanID == nil) &&
		got.Service == want.ServiceName && got.Name == want.Name && got.Nanos == want.Duration && len(got.Attrs) == len(want.Attributes) &&
		len(got.Events) == len(want.Events)
	for _, a := range got.Attrs {
		same = same && want.Attributes[a.Key] == a.Value
	}
	for i := range got.Events {
		same = same && got.Events[i].Name == want.Events[i].Name && len(got.Events[i].Attrs) == len(want.Events[i].Attributes)
	}
	if !same {
		t.Errorf("Arrow reads %+v, want %+v", got, want)
	}
}

// arrowGo runs the go command in the module of the Arrow reader.
func arrowGo(args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = "testdata/arrowcheck"
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false", "GOWORK=off")
	return cmd.CombinedOutput()
}
