package names

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// valued returns a request of a tenant whose spans have the given values of the key "k".
func valued(tenant string, values ...string) *otlpdata.Batch {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "x")
	list := rs.ScopeSpans().AppendEmpty().Spans()
	for i, v := range values {
		s := list.AppendEmpty()
		s.SetTraceID([16]byte{byte(i), byte(i >> 8), 1})
		s.SetStartTimestamp(pcommon.Timestamp(scantest.Start))
		s.Attributes().PutStr("k", v)
	}
	return otlpdata.FromTraces(td, otlpdata.Meta{Tenant: tenant})
}

// countedTables is a segment that counts how often its vocabulary is read.
type countedTables struct {
	*segment.Segment
	asked *int
	err   error
}

func (s countedTables) Tables() (*rows.Tables, error) {
	*s.asked++
	t, err := s.Segment.Tables()
	return t, errors.Join(s.err, err)
}

func (s realStore) checkValues(t *testing.T, tenant, prefix string, limit int, want ...string) {
	t.Helper()
	got, err := s.AttributeValues(t.Context(), tenant, "k", prefix, limit)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("values with prefix %q are %q, %v; want %q", prefix, got, err, want)
	}
}

// TestCompletionIsCached checks that the texts of a segment are read once for each tenant and key,
// that they are dropped with the segment, and that damaged segments are reread.
func TestCompletionIsCached(t *testing.T) {
	asked := 0
	s := newRealStore(t, 1, scan.Options{})
	add := func(err error, b *otlpdata.Batch) {
		s.SegmentOf(t, b)
		last := len(s.Segments) - 1
		s.Segments[last] = countedTables{s.Segments[last].(*segment.Segment), &asked, err}
	}
	add(nil, valued("a", "1", "2", "22"))
	add(nil, valued("b", "3"))
	for range 3 {
		s.checkValues(t, "a", "", 0, "1", "2", "22")
		s.checkValues(t, "a", "2", 0, "2", "22")
		s.checkValues(t, "a", "2", 1, "2")
		s.checkValues(t, "b", "", 0, "3")
		s.checkValues(t, "c", "", 0)
		if keys, err := s.AttributeKeys(t.Context(), "a", "", 0); err != nil || !slices.Equal(keys, []string{"k", "service.name"}) {
			t.Errorf("keys are %q, %v", keys, err)
		}
	}
	if asked != 8 {
		t.Errorf("vocabularies of two segments read %d times for four topics, want 8", asked)
	}
	if _, err := s.Tables[1].Append(valued("a", "4", "2"), 0); err != nil {
		t.Fatal(err)
	}
	s.checkValues(t, "a", "", 0, "1", "2", "22", "4")
	s.Segments = s.Segments[1:]
	s.checkValues(t, "a", "", 0, "2", "4")
	if n := len(s.texts.bySource); n != 1 {
		t.Errorf("%d sources cached, want 1", n)
	}
	s.checkValues(t, "b", "", 0, "3")

	asked = 0
	add(&source.DamageError{File: "f", Part: "tables", Err: errors.New("rotten")}, valued("a", "5"))
	for range 3 {
		got, err := s.AttributeValues(t.Context(), "a", "k", "", 0)
		if d := (*tracestore.DamagedError)(nil); !errors.As(err, &d) || !slices.Equal(got, []string{"2", "4"}) {
			t.Errorf("values are %q, %v; want 2 and 4, and what is missing", got, err)
		}
	}
	if asked != 3 {
		t.Errorf("damaged vocabulary read %d times, want 3", asked)
	}
}

// TestCompletionCacheIsBounded checks that the cache respects its limit, and that texts that are
// not cached are still listed.
func TestCompletionCacheIsBounded(t *testing.T) {
	const memory = 2000
	s := newRealStore(t, 1, scan.Options{Memory: memory})
	for i := range 10 {
		s.SegmentOf(t, valued("a", fmt.Sprintf("%d %0100d", i, i), "same"))
	}
	for range 2 {
		for _, key := range []string{"k", "service.name", "absent"} {
			want := map[string]int{"k": 11, "service.name": 1}[key]
			if got, err := s.AttributeValues(t.Context(), "a", key, "", 0); err != nil || len(got) != want {
				t.Errorf("values of %s are %q, %v; want %d", key, got, err, want)
			}
		}
	}
	left := int64(0)
	for e := s.texts.used.Front(); e != nil; e = e.Next() {
		c := e.Value.(*cachedTexts)
		left += c.known.memory() + int64(len(c.topic.tenant)+len(c.topic.key))
	}
	if left != s.texts.memory || left > memory/2 || left == 0 {
		t.Errorf("cache has %d bytes and reports %d, with a limit of %d", left, s.texts.memory, memory)
	}
}

// TestManyTexts checks that texts beyond the limit of the cache are found in the dictionary, if a
// prefix is given.
func TestManyTexts(t *testing.T) {
	const values, often = maxTexts + 2000, 3
	table := memtable.New(memtable.Options{MaxRows: often*values + 1})
	for range often { // the memtable only makes words of texts that occur several times
		var texts []string
		for i := range values {
			texts = append(texts, fmt.Sprintf("value %05d", i))
		}
		if _, err := table.Append(valued("", texts...), 0); err != nil {
			t.Fatal(err)
		}
	}
	in, fsys := table.Input(), vfstest.NewMem()
	_, err := segment.Write(fsys, "segment", segment.Input{Tables: in.Tables, Rows: in.Rows, Row: in.Row}, segment.Meta{}, segment.Options{})
	scantest.Must(err)
	seg, err := segment.Open(fsys, "segment")
	scantest.Must(err)
	t.Cleanup(func() { _ = seg.Close() })
	e := New(scan.NewStore(func() scan.View { return scantest.Sources{seg} }, scan.Options{}))
	for range 2 {
		found := 0
		for n := range values / 1000 {
			prefix := fmt.Sprintf("value %02d", n)
			got, err := e.AttributeValues(t.Context(), "", "k", prefix, 0)
			if err != nil {
				t.Fatal(err)
			}
			found += len(got)
		}
		if k := e.texts.get(seg, topic{key: "k"}); found < maxTexts || len(k.texts) != maxTexts || !k.cut {
			t.Errorf("%d of %d texts cached, %d found", len(k.texts), values, found)
		}
	}
	if got, err := e.AttributeValues(t.Context(), "", "k", "", 3*values); err != nil || len(got) < maxTexts {
		t.Errorf("%d values, %v", len(got), err)
	}
}

// TestLongTexts checks that long texts take little memory in lists and in the cache, and that a
// list has at least one text.
func TestLongTexts(t *testing.T) {
	const values, long = 100, 1 << 20
	s := newRealStore(t, 1, scan.Options{})
	var texts []string
	for i := range values {
		texts = append(texts, fmt.Sprintf("%02d%s", i, strings.Repeat("x", long)))
	}
	live := valued("", texts...)
	for name, add := range map[string]func(){
		"segment": func() { s.SegmentOf(t, live) },
		"memtable": func() {
			s.Segments = nil
			_, err := s.Tables[1].Append(live, 0)
			scantest.Must(err)
		},
	} {
		add()
		got, err := s.AttributeValues(t.Context(), "", "k", "", 2*values)
		size := 0
		for _, text := range got {
			size += len(text)
		}
		if err != nil || len(got) == 0 || size > maxListBytes+long || !slices.Contains(texts, got[0]) {
			t.Errorf("%s: list has %d texts with %d bytes, error %v", name, len(got), size, err)
		}
		for _, src := range s.Segments {
			if k := s.texts.get(src, topic{key: "k"}); k == nil || k.memory() > maxTextBytes+2*long || !k.cut {
				t.Errorf("%s: want a cached entry of at most %d bytes; entry exists: %t", name, maxTextBytes, k != nil)
			}
		}
	}
}
