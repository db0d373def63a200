package otlpdata_test

import (
	"maps"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestMetadata(t *testing.T) {
	headers := map[string][]string{"X-Org": {"a", ""}, "x-empty": {}, "authorization": {"Bearer \xff"}, "": {"no name"}}
	m := otlpdata.NewMetadata(headers)
	same := map[string][]string{"x-org": {"a", ""}, "X-Empty": {}, "Authorization": {"Bearer \xff"}, "": {"no name"}}
	if m != otlpdata.NewMetadata(same) {
		t.Error("equal headers differ")
	}
	got := maps.Collect(m.All())
	if len(got) != 4 || !slices.Equal(got["x-org"], headers["X-Org"]) || len(got["x-empty"]) != 0 || !slices.Equal(got[""], headers[""]) {
		t.Errorf("%q", got)
	}
	if names := slices.Collect(maps.Keys(got)); !slices.IsSorted(slices.Sorted(slices.Values(names))) {
		t.Errorf("%q", names)
	}
	only := m.Only([]string{"x-org", "x-other"})
	if only != otlpdata.NewMetadata(map[string][]string{"x-org": {"a", ""}}) || m.Only(nil) != (otlpdata.Metadata{}) {
		t.Errorf("%q", maps.Collect(only.All()))
	}
	if only == m.Only([]string{"x-empty"}) || m.Only([]string{"x-empty"}) == (otlpdata.Metadata{}) {
		t.Error("an empty header equals another or none")
	}
}

// Joined batches keep the metadata that all of them have.
func TestConcatOfMetadata(t *testing.T) {
	batch := func(org string) *otlpdata.Batch {
		td := ptrace.NewTraces()
		td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		return otlpdata.FromTraces(td, otlpdata.Meta{Metadata: otlpdata.NewMetadata(map[string][]string{"x-org": {org}})})
	}
	same, err := otlpdata.Concat(batch("a"), batch("a"))
	if err != nil || same.Meta() != batch("a").Meta() {
		t.Errorf("%v, %+v", err, same.Meta())
	}
	mixed, err := otlpdata.Concat(batch("a"), batch("b"), batch("a"))
	if err != nil || mixed.Meta() != (otlpdata.Meta{}) {
		t.Errorf("%v, %+v", err, mixed.Meta())
	}
	without := batch("a").WithMetadata(otlpdata.Metadata{})
	if without.Meta() != (otlpdata.Meta{}) || without.Len() != 1 || without.Size() != batch("a").Size() {
		t.Errorf("%+v, %d spans", without.Meta(), without.Len())
	}
}
