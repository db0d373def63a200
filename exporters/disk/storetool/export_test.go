package storetool

import (
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
)

// mixedStore returns a store with captured and synthetic spans in segments and in the log, with
// some duplicates.
func mixedStore(t *testing.T) *store {
	s := newStore(t)
	real, made := captured(t), synthetic(t, 1, 6000, "")
	s.segment(1, append(made[:12:12], real...)...)
	s.segment(2, append(made[12:25:25], made[3], made[11])...)
	s.segment(3, synthetic(t, 2, 1000, "acme/eu")...)
	s.log(9, append(made[25:], made[24], made[25], real[0])...)
	return s
}

// filesOf returns the files in a folder and its subfolders.
func filesOf(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	check(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, name)
		}
		return err
	}))
	return all
}

// exported returns the spans of an OTLP export as text. Spans in tenant folders belong to tenantOf.
func exported(t *testing.T, dir, tenantOf string) []string {
	t.Helper()
	var v spanTexts
	for _, file := range filesOf(t, dir) {
		b, err := os.ReadFile(file)
		check(t, err)
		if v.tenant = ""; strings.Contains(file, "tenant=") {
			v.tenant = tenantOf
		}
		for len(b) > 0 {
			var td ptrace.Traces
			if strings.HasSuffix(file, ".jsonl") {
				line, rest, _ := strings.Cut(string(b), "\n")
				td, err = (&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(line))
				b = []byte(rest)
			} else {
				n := binary.BigEndian.Uint32(b)
				td, err = (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(b[4:][:n])
				b = b[4+n:]
			}
			check(t, err)
			if n := td.SpanCount(); n > maxRequestSpans {
				t.Errorf("request has %d spans, want at most the limit", n)
			}
			v.add(t, td)
		}
	}
	slices.Sort(v.list)
	return v.list
}

// An OTLP export has every span once, unchanged.
func TestExportOTLP(t *testing.T) {
	t.Parallel()
	soak.SkipIfRaced(t)
	s := mixedStore(t)
	want := s.spans(nil)
	dir := s.unlock()
	for _, format := range []string{"otlp-json", "otlp-proto"} {
		out := filepath.Join(t.TempDir(), "out")
		stdout := mustRun(t, "export", dir, "--format", format, "--output", out)
		if got := exported(t, out, "acme/eu"); !slices.Equal(got, want) {
			t.Errorf("%s: %d spans, want %d; %s", format, len(got), len(want), stdout)
		}
		for _, file := range filesOf(t, out) {
			name := strings.TrimPrefix(file, out+"/")
			ok, _ := filepath.Match("date=????-??-??/hour=??/spans-0000.*", name)
			if !ok && !strings.HasPrefix(name, "tenant=acme%2Feu/date=") {
				t.Errorf("unexpected file %s", file)
			}
		}
	}
}

func TestExportSelection(t *testing.T) {
	t.Parallel()
	soak.SkipIfRaced(t)
	s := mixedStore(t)
	var starts []uint64
	s.spans(func(sp *otlpdata.Span, _ string) bool { starts = append(starts, sp.Start); return false })
	slices.Sort(starts)
	from, to := time.Unix(0, int64(starts[len(starts)/4])).UTC(), time.Unix(0, int64(starts[len(starts)/2])).UTC()
	inside := func(sp *otlpdata.Span, service string) bool {
		return sp.Start >= uint64(from.UnixNano()) && sp.Start < uint64(to.UnixNano())
	}
	f := func(wants func(sp *otlpdata.Span, service string) bool, keep func(text string) bool, flags ...string) {
		t.Helper()
		want := slices.DeleteFunc(s.spans(wants), func(text string) bool { return keep != nil && !keep(text) })
		out := filepath.Join(t.TempDir(), "out")
		mustRun(t, append([]string{"export", "--format=otlp-proto", "--output", out, s.path}, flags...)...)
		if got := exported(t, out, "acme/eu"); !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("%v: %d spans, want %d", flags, len(got), len(want))
		}
	}
	name := synthetic(t, 1, 100, "")[0].Services()[0].Service
	s.unlock()
	f(inside, nil, "--from", from.Format(time.RFC3339Nano), "--to", to.Format(time.RFC3339Nano))
	f(func(_ *otlpdata.Span, of string) bool { return of == name }, nil, "--service", name)
	f(nil, func(text string) bool { return strings.HasPrefix(text, "acme/eu ") }, "--tenant", "acme/eu")
	f(nil, func(text string) bool { return strings.HasPrefix(text, " ") }, "--tenant=")
}

// The rows of a Parquet export have the fields of the spans.
func TestExportParquet(t *testing.T) {
	t.Parallel()
	soak.SkipIfRaced(t)
	s := mixedStore(t)
	out := filepath.Join(t.TempDir(), "out")
	mustRun(t, "export", s.unlock(), "--format", "parquet", "--output", out)
	got := map[string]parquetSpan{}
	rows := 0
	for _, file := range filesOf(t, out) {
		list, err := parquet.ReadFile[parquetSpan](file)
		check(t, err)
		for _, r := range list {
			rows++
			hour := time.Unix(0, r.Start).UTC().Format("date=2006-01-02/hour=15/")
			if !strings.Contains(filepath.ToSlash(file), hour) {
				t.Fatalf("span of partition %s is in %s", hour, file)
			}
			got[r.Tenant+r.TraceID+r.SpanID+r.Name+r.Kind] = r
		}
	}
	if want := len(s.spans(nil)); rows != want {
		t.Errorf("%d rows, want %d", rows, want)
	}
	for _, b := range s.batch {
		check(t, b.Walk(&rowCheck{t: t, tenant: b.Meta().Tenant, got: got}))
	}
}

// rowCheck compares spans with their rows in a Parquet export.
type rowCheck struct {
	t        *testing.T
	tenant   string
	resource otlpdata.Resource
	scope    otlpdata.Scope
	got      map[string]parquetSpan
}

func (c *rowCheck) Resource(r *otlpdata.Resource) error { c.resource = *r; return nil }
func (c *rowCheck) Scope(s *otlpdata.Scope) error       { c.scope = *s; return nil }

func (c *rowCheck) Span(s *otlpdata.Span) error {
	id := otlpdata.SpanID(s.TraceID[:8]).String() + otlpdata.SpanID(s.TraceID[8:]).String()
	r, ok := c.got[c.tenant+id+s.SpanID.String()+s.Name+s.KindName()]
	if !ok {
		c.t.Errorf("span %s of trace %s is missing", s.SpanID, id)
		return nil
	}
	parent := ""
	if r.ParentSpanID != nil {
		parent = *r.ParentSpanID
	}
	if s.ParentID.IsZero() != (parent == "") || parent != "" && parent != s.ParentID.String() {
		c.t.Errorf("span %s: parent %q, want %s", s.SpanID, parent, s.ParentID)
	}
	same := r.ServiceName == c.resource.Service && r.ScopeName == c.scope.Name && r.ScopeVersion == c.scope.Version &&
		r.Start == int64(s.Start) && r.End == int64(s.End) && r.Duration == max(int64(s.End-s.Start), 0) && r.TraceState == s.TraceState &&
		r.Flags == int64(s.Flags) && r.StatusText == s.StatusMessage && r.StatusCode == statusName(s.StatusCode) &&
		r.ScopeSchemaURL == c.scope.SchemaURL && r.ResourceSchemaURL == c.resource.SchemaURL && len(r.Events) == len(s.Events) &&
		len(r.Links) == len(s.Links) && r.DroppedAttributes == int64(s.DroppedAttributes)
	if !same {
		c.t.Errorf("row %+v does not match span\n%+v", r, s)
		return nil
	}
	c.attributes(r.Attributes, s.Attributes)
	c.attributes(r.Resource, c.resource.Attributes)
	c.attributes(r.ScopeAttributes, c.scope.Attributes)
	for i, e := range s.Events {
		if r.Events[i].Time != int64(e.Time) || r.Events[i].Name != e.Name {
			c.t.Errorf("event %+v, want %+v", r.Events[i], e)
		}
		c.attributes(r.Events[i].Attributes, e.Attributes)
	}
	for i, l := range s.Links {
		if r.Links[i].SpanID != l.SpanID.String() || r.Links[i].TraceState != l.TraceState {
			c.t.Errorf("link %+v, want %+v", r.Links[i], l)
		}
		c.attributes(r.Links[i].Attributes, l.Attributes)
	}
	return nil
}

func (c *rowCheck) attributes(got map[string]string, want []otlpdata.KeyValue) {
	c.t.Helper()
	keys := map[string]bool{}
	for _, kv := range want {
		keys[kv.Key] = true
		first, _ := otlpdata.Get(want, kv.Key)
		if got[kv.Key] != strings.ToValidUTF8(first.AsString(), "\uFFFD") {
			c.t.Errorf("attribute %s is %q, want %q", kv.Key, got[kv.Key], first.AsString())
		}
	}
	if len(got) != len(keys) {
		c.t.Errorf("attributes %v, want %v", got, want)
	}
}

func TestExportRejectsBadArguments(t *testing.T) {
	dir := newStore(t).unlock()
	full := t.TempDir()
	check(t, os.WriteFile(filepath.Join(full, "x"), nil, 0o600))
	f := func(code int, want string, args ...string) {
		t.Helper()
		if got, _, stderr := run(t, append([]string{"export"}, args...)...); got != code || !strings.Contains(stderr, want) {
			t.Errorf("%v: %d %s", args, got, stderr)
		}
	}
	f(2, "--format must be parquet", dir, "--output", "x")
	f(2, "--output is missing", dir, "--format", "parquet")
	f(2, "cannot parse time", dir, "--format", "parquet", "--output", "x", "--from", "yesterday")
	f(2, "must be before", dir, "--format", "parquet", "--output", "x", "--from", "2026-11-22", "--to", "2026-11-22")
	f(2, "expected one folder", "--format", "parquet", "--output", "x")
	f(1, "is not empty", dir, "--format", "parquet", "--output", full)
	f(1, "is not a span store", full, "--format", "parquet", "--output", filepath.Join(t.TempDir(), "x"))
}
