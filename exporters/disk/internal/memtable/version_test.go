package memtable

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// The version of a trace is the version of its last visible row, with the second of its arrival.
func TestTraceVersion(t *testing.T) {
	table := New(Options{BlockRows: 4})
	start := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
	add := func(after time.Duration, trace byte) {
		t.Helper()
		table.Arrived(start.Add(after))
		td := ptrace.NewTraces()
		s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetTraceID(pcommon.TraceID{trace})
		if _, err := table.Append(otlpdata.FromTraces(td, otlpdata.Meta{Tenant: "a"}), 0); err != nil {
			t.Fatal(err)
		}
	}
	check := func(src source.Source, tenant string, trace byte, number uint64, want time.Time) {
		t.Helper()
		got, stored, err := src.(source.Versioned).TraceVersion(tenant, otlpdata.TraceID{trace})
		if err != nil || got != number || !stored.Equal(want) {
			t.Errorf("trace %d: %d %s %v, want %d %s", trace, got, stored, err, number, want)
		}
	}
	add(0, 1)
	add(700*time.Millisecond, 2)
	before := table.Source()
	add(1500*time.Millisecond, 1)
	after := table.Source()
	check(before, "a", 1, 1, start)
	check(before, "a", 2, 2, start)
	check(after, "a", 1, 3, start.Add(1500*time.Millisecond))
	check(after, "b", 1, 0, time.Time{})
	check(after, "a", 3, 0, time.Time{})
	for i := range maxArrivals {
		add(time.Duration(2+i)*arrivalStep, 4)
	}
	check(table.Source(), "a", 2, 2, time.Time{})
	check(table.Source(), "a", 4, maxArrivals+3, start.Add((maxArrivals+1)*arrivalStep))
}
