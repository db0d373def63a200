package aggregate

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// namedSpans returns spans of one service with different names, spread over two minutes.
func namedSpans(names int) *otlpdata.Batch {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "service")
	list := rs.ScopeSpans().AppendEmpty().Spans()
	for i := range names {
		span := list.AppendEmpty()
		span.SetName(fmt.Sprintf("operation %d", i))
		span.SetTraceID([16]byte{byte(i), byte(i >> 8), 1})
		start := scantest.Day.Add(time.Duration(i) * 2 * time.Minute / time.Duration(names))
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(start.Add(time.Duration(1 + i%7))))
	}
	return otlpdata.FromTraces(td, otlpdata.Meta{})
}

// stored returns a store with a segment, and one with a memtable.
func stored(t *testing.T, b *otlpdata.Batch) map[string]realStore {
	t.Helper()
	sealed, live := newRealStore(t, 1, scan.Options{}), newRealStore(t, 1, scan.Options{})
	sealed.SegmentOf(t, b)
	live.Tables = live.Tables[:1]
	live.Tables[0] = memtable.New(memtable.Options{})
	_, err := live.Tables[0].Append(b, 0)
	scantest.Must(err)
	return map[string]realStore{"segment": sealed, "memtable": live}
}

// TestManyOperations checks that spans are counted by their names even if their service has more
// operations than series.
func TestManyOperations(t *testing.T) {
	sent := namedSpans(tracestore.MaxOperations + 50)
	name := func(op tracestore.Op, text string) tracestore.Expr {
		return scantest.Property(tracestore.Name, op, tracestore.Text(text))
	}
	last := fmt.Sprintf("operation %d", tracestore.MaxOperations+49)
	wheres := []tracestore.Expr{nil, name(tracestore.Eq, last), name(tracestore.Ne, last), name(tracestore.Eq, "operation 0"),
		name(tracestore.Eq, tracestore.OtherOperation)}
	by := func(p tracestore.Place) tracestore.GroupQuery {
		return tracestore.GroupQuery{By: []tracestore.Field{{Place: p}}, Limit: 10}
	}
	wants := []tracestore.Aggregation{{Groups: by(tracestore.Service)}, {Groups: by(tracestore.Kind)}, {Groups: by(tracestore.Name)},
		{Heatmap: tracestore.HeatmapQuery{Step: time.Minute}}}
	for kind, s := range stored(t, sent) {
		for i, where := range wheres {
			for j, a := range wants {
				q := tracestore.Query{From: scantest.Day.Add(-time.Hour), To: scantest.Day.Add(time.Hour), Where: where}
				want, err := storequery.AggregateSpans(q, a, sent)
				scantest.Must(err)
				got, err := s.Aggregate(t.Context(), q, a)
				scantest.Must(err)
				if where == nil && j < 2 && got.Scanned > 0 {
					t.Errorf("%s, %d: examined %d spans, want none", kind, j, got.Scanned)
				}
				if got.Scanned = want.Scanned; !reflect.DeepEqual(got, want) {
					t.Errorf("%s, condition %d, aggregation %d: %d spans, share %g, want %d", kind, i, j, got.Spans, got.Share, want.Spans)
				}
			}
		}
	}
}

// TestLateShare checks that the share is below 1 if not all spans were counted before the deadline.
func TestLateShare(t *testing.T) {
	sent := namedSpans(500)
	groups := tracestore.GroupQuery{By: []tracestore.Field{{Place: tracestore.Service}}, Limit: 10}
	heat := tracestore.HeatmapQuery{Step: time.Minute}
	q := tracestore.Query{From: scantest.Day.Add(30 * time.Second), To: scantest.Day.Add(110 * time.Second)}
	for kind, s := range stored(t, sent) {
		for i, a := range []tracestore.Aggregation{{Groups: groups}, {Heatmap: heat}, {Facets: tracestore.FacetQuery{Values: 3}}, {},
			{Heatmap: heat, Groups: groups, Facets: tracestore.FacetQuery{Values: 3}}} {
			want, err := storequery.AggregateSpans(q, a, sent)
			scantest.Must(err)
			for looks := 1; ; looks++ { // the first look is before the query
				got, err := s.Aggregate(&lateContext{Context: t.Context(), looks: looks}, q, a)
				scantest.Must(err)
				check := func(what string, spans uint64, share float64) {
					if share <= 0 || share > 1 || share == 1 && spans != want.Spans {
						t.Errorf("%s, aggregation %d, %d looks: %d of %d %s, share %g", kind, i, looks, spans, want.Spans, what, share)
					}
				}
				check("spans", got.Spans, got.Share)
				if got.Groups != nil {
					check("spans in groups", got.Groups.All.Durations.Count(), got.Groups.Share)
				}
				if got.Facets != nil {
					check("spans in facets", got.Facets.Spans, got.Facets.Share)
				}
				if got.Complete() {
					break
				}
			}
		}
	}
}

// countingAccount grants everything.
type countingAccount struct{ held, most int64 }

func (c *countingAccount) Grow(n int64) error {
	c.held += n
	c.most = max(c.most, c.held)
	return nil
}

func (c *countingAccount) Shrink(n int64) { c.held -= n }

// TestSeriesMemory checks that what is counted from series is charged to the query, and given back.
func TestSeriesMemory(t *testing.T) {
	const names = 1500
	a := tracestore.Aggregation{Groups: tracestore.GroupQuery{By: []tracestore.Field{{Place: tracestore.Name}}, Limit: 10}}
	q := tracestore.Query{From: scantest.Day.Add(-time.Hour), To: scantest.Day.Add(time.Hour)}
	for kind, s := range stored(t, namedSpans(names)) {
		c := &countingAccount{}
		got, err := s.Aggregate(tracestore.WithAccount(t.Context(), c), q, a)
		if err != nil || got.Scanned > 0 || got.Groups.Distinct != names {
			t.Errorf("%s: %d groups, examined %d spans, error %v", kind, got.Groups.Distinct, got.Scanned, err)
		}
		if least := int64(names * (tallySize + 400)); c.most < least || c.held != 0 {
			t.Errorf("%s: reserved %d bytes, want at least %d; %d are left", kind, c.most, least, c.held)
		}
	}
}
