package storetool

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/exporters/disk"
	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
	"github.com/tracing-backend/tracing/test/bench"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// began is the start time of test spans: just before a full hour, so that they span two partitions.
var began = time.Date(2026, 11, 21, 17, 59, 59, 900_000_000, time.UTC)

// store is a store that a test fills as the exporter does.
type store struct {
	t     testing.TB
	dir   *directory.Dir
	path  string
	batch []*otlpdata.Batch // everything that was written
}

func newStore(t testing.TB) *store {
	t.Helper()
	s := &store{t: t, path: filepath.ToSlash(filepath.Join(t.TempDir(), "disk"))}
	s.open()
	return s
}

func (s *store) open() {
	var err error
	s.dir, err = directory.Open(vfs.OS(), s.path)
	check(s.t, err)
}

// unlock releases the lock of the folder and returns its path.
func (s *store) unlock() string {
	check(s.t, s.dir.Close())
	return s.path
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// segment writes batches to a segment for a log epoch and returns its path.
func (s *store) segment(epoch uint64, batches ...*otlpdata.Batch) string {
	s.t.Helper()
	table := memtable.New(memtable.Options{MaxRows: math.MaxInt, MaxBytes: math.MaxInt64})
	defer table.Release()
	for _, b := range batches {
		for from := 0; from < b.Len(); {
			r, err := table.Append(b, from)
			check(s.t, err)
			from += r.Spans
		}
	}
	arrived := began.Add(time.Duration(epoch) * time.Second)
	name := directory.NewSegment(arrived, 0, epoch, epoch)
	check(s.t, s.dir.WithDay(name, func() error {
		_, err := segment.Write(vfs.OS(), s.dir.Path(name), segment.Input(table.Input()),
			segment.Meta{FirstEpoch: epoch, LastEpoch: epoch, FirstArrival: arrived, LastArrival: arrived}, segment.Options{})
		return err
	}))
	s.batch = append(s.batch, batches...)
	return s.dir.Path(name)
}

// log writes batches to the log of an epoch.
func (s *store) log(epoch uint64, batches ...*otlpdata.Batch) {
	s.t.Helper()
	logs, err := wal.OpenDir(vfs.OS(), s.dir.Log(), wal.Options{Step: 4096})
	check(s.t, err)
	l, err := logs.Create(epoch)
	check(s.t, err)
	table := memtable.New(memtable.Options{})
	defer table.Release()
	for _, b := range batches {
		r, err := table.Append(b, 0)
		check(s.t, err)
		ticket, err := l.AppendAll(r.Records...)
		check(s.t, err)
		check(s.t, l.Commit(s.t.Context(), ticket))
	}
	check(s.t, l.Close())
	s.batch = append(s.batch, batches...)
}

// synthetic returns batches of generated spans.
func synthetic(t testing.TB, seed uint64, spans int, tenant string) []*otlpdata.Batch {
	t.Helper()
	var all []*otlpdata.Batch
	for r := range bench.New(seed, began).Requests(spans, 200) {
		b, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{Tenant: tenant, Received: began}, otlpdata.Limits{})
		check(t, err)
		all = append(all, b)
	}
	return all
}

// captured returns traces that were captured from real systems.
func captured(t testing.TB) []*otlpdata.Batch {
	t.Helper()
	files, err := filepath.Glob("../../../test/e2e/query/testdata/real-traces/*.json.gz")
	check(t, err)
	var all []*otlpdata.Batch
	for _, file := range files {
		f, err := os.Open(file)
		check(t, err)
		z, err := gzip.NewReader(f)
		check(t, err)
		for dec := json.NewDecoder(z); ; {
			var doc json.RawMessage
			if err := dec.Decode(&doc); err == io.EOF {
				break
			} else {
				check(t, err)
			}
			td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(doc)
			check(t, err)
			all = append(all, otlpdata.FromTraces(td, otlpdata.Meta{Received: began}))
		}
		check(t, f.Close())
	}
	return all
}

// spanTexts converts spans to text that contains everything about them.
type spanTexts struct {
	tenant   string
	resource otlpdata.Resource
	scope    otlpdata.Scope
	list     []string
	selects  func(s *otlpdata.Span, service string) bool
}

func (v *spanTexts) Resource(r *otlpdata.Resource) error { v.resource = *r; return nil }
func (v *spanTexts) Scope(s *otlpdata.Scope) error       { v.scope = *s; return nil }
func (v *spanTexts) Span(s *otlpdata.Span) error {
	if v.selects == nil || v.selects(s, v.resource.Service) {
		span := otlpdata.AppendSpan(nil, s) // not quoted, which would take a quarter of the tests' CPU time
		v.list = append(v.list, fmt.Sprintf("%s %d:%s %s %d:%s %s %d:%s", v.tenant, len(v.resource.Raw), v.resource.Raw,
			v.resource.SchemaURL, len(v.scope.Raw), v.scope.Raw, v.scope.SchemaURL, len(span), span))
	}
	return nil
}

// add adds the spans of a request. Converting from pdata normalizes their encoding.
func (v *spanTexts) add(t testing.TB, td ptrace.Traces) {
	t.Helper()
	check(t, otlpdata.FromTraces(td, otlpdata.Meta{}).Walk(v))
}

// spans returns the selected spans of the store as text, sorted and without duplicates. nil selects
// all.
func (s *store) spans(selects func(s *otlpdata.Span, service string) bool) []string {
	s.t.Helper()
	v := spanTexts{selects: selects}
	for _, b := range s.batch {
		td, err := b.Traces()
		check(s.t, err)
		v.tenant = b.Meta().Tenant
		v.add(s.t, td)
	}
	slices.Sort(v.list)
	return slices.Compact(v.list)
}

// run runs a `store` command.
func run(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	factories := []pipeline.Factory{disk.Factory().Commands(Commands()...)}
	code = app.Run(t.Context(), append([]string{"store"}, args...), &out, &err, factories)
	return code, out.String(), err.String()
}

// mustRun is like run but fails the test if the command fails. It returns standard output.
func mustRun(t testing.TB, args ...string) string {
	t.Helper()
	code, stdout, stderr := run(t, args...)
	if code != 0 {
		t.Fatalf("%s: exit code %d, %s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// damage flips bits of the byte at offset. Calling it again restores the byte.
func damage(t testing.TB, file string, offset int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	check(t, err)
	var b [1]byte
	_, err = f.ReadAt(b[:], offset)
	check(t, err)
	b[0] ^= 0x55
	_, err = f.WriteAt(b[:], offset)
	check(t, err)
	check(t, f.Close())
}
