package storequery

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func TestPeerOf(t *testing.T) {
	text := func(key, value string) otlpdata.KeyValue {
		return otlpdata.KeyValue{Key: key, Value: otlpdata.StringValue(value)}
	}
	long := strings.Repeat("x", MaxPeerName)
	for _, c := range []struct {
		name string
		kind int32
		kvs  []otlpdata.KeyValue
		want string
	}{
		{"no attributes", otlpdata.KindClient, nil, ""},
		{"most specific key", otlpdata.KindClient, []otlpdata.KeyValue{text("messaging.system", "kafka"), text("db.system", "mysql"),
			text("db.system.name", "mariadb"), text("peer.service", "orders")}, "orders"},
		{"first value that is not empty", otlpdata.KindInternal,
			[]otlpdata.KeyValue{text("peer.service", ""), text("peer.service", "a"), text("peer.service", "b")}, "a"},
		{"not a string", otlpdata.KindClient,
			[]otlpdata.KeyValue{{Key: "peer.service", Value: otlpdata.IntValue(7)}, text("db.system", "mysql")}, "mysql"},
		{"too long", otlpdata.KindProducer, []otlpdata.KeyValue{text("peer.service", long+"x"), text("messaging.system", long)}, long},
		{"server", otlpdata.KindServer, []otlpdata.KeyValue{text("peer.service", "orders")}, ""},
		{"consumer", otlpdata.KindConsumer, []otlpdata.KeyValue{text("messaging.system", "kafka")}, ""},
	} {
		if got := PeerOf(&otlpdata.Span{Kind: c.kind, Attributes: c.kvs}); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// peerBatches returns one batch for each span. Each span names a peer.
func peerBatches(tb testing.TB, spans []callSpan) (out []*otlpdata.Batch) {
	tb.Helper()
	for _, l := range spans {
		out = append(out, batchOf(tb, func(rs ptrace.ResourceSpans, _ ptrace.ScopeSpans, s ptrace.Span) {
			rs.Resource().Attributes().PutStr("service.name", l.service)
			s.SetTraceID([16]byte{1})
			s.SetSpanID([8]byte{l.id})
			s.SetParentSpanID([8]byte{l.parent})
			s.SetKind(l.kind)
			s.SetStartTimestamp(pcommon.Timestamp(l.start))
			s.SetEndTimestamp(pcommon.Timestamp(l.start + 10))
			s.Attributes().PutStr("peer.service", "peer")
			if l.failed {
				s.Status().SetCode(ptrace.StatusCodeError)
			}
		}))
	}
	return out
}

func TestCountPeers(t *testing.T) {
	for _, c := range []struct {
		name  string
		spans []callSpan
		want  []tracestore.Edge
	}{
		{"no child span", []callSpan{{1, 0, "a", server, 0, false}, {2, 1, "a", client, 1, true}},
			[]tracestore.Edge{edge("a", "peer", false, 1, 1)}},
		{"counterpart arrives first", []callSpan{{3, 2, "b", internal, 2, false}, {2, 0, "a", client, 1, false}},
			[]tracestore.Edge{edge("b", "peer", false, 1, 0)}},
		{"kinds", []callSpan{{1, 9, "a", internal, 0, false}, {2, 9, "a", ptrace.SpanKindUnspecified, 0, false},
			{3, 9, "a", producer, 0, false}, {4, 9, "a", consumer, 0, false}, {5, 9, "a", server, 0, false}},
			[]tracestore.Edge{edge("a", "peer", false, 2, 0), edge("a", "peer", true, 1, 0)}},
		{"duplicates", []callSpan{{2, 0, "a", client, 0, false}, {2, 0, "a", client, 0, false}},
			[]tracestore.Edge{edge("a", "peer", false, 1, 0)}},
		{"shared id", []callSpan{{2, 0, "a", client, 1, false}, {2, 0, "b", server, 2, false}}, nil},
		{"own parent", []callSpan{{2, 2, "a", client, 1, false}}, nil},
		{"zero id", []callSpan{{0, 0, "a", client, 1, false}, {1, 0, "b", server, 1, false}},
			[]tracestore.Edge{edge("a", "peer", false, 1, 0)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := CountPeers(time.Time{}, time.Time{}, peerBatches(t, c.spans)...)
			if err != nil || !got.Complete() || !reflect.DeepEqual(got.Edges, c.want) {
				t.Errorf("%+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

// TestCountPeersWindow checks that only the start of the call decides, not the start of its
// counterpart.
func TestCountPeersWindow(t *testing.T) {
	batches := peerBatches(t, []callSpan{{1, 0, "a", client, 100, false}, {2, 0, "a", client, 100, false}, {3, 2, "b", server, 900, false}})
	for _, c := range []struct{ from, to, calls int64 }{{100, 100, 1}, {101, 1000, 0}, {0, 99, 0}, {0, 200, 1}, {200, 0, 0}} {
		got, err := CountPeers(time.Unix(0, c.from), time.Unix(0, c.to), batches...)
		var calls uint64
		for _, e := range got.Edges {
			calls += e.Calls
		}
		if err != nil || calls != uint64(c.calls) {
			t.Errorf("from %d to %d: %v, %v, want %d calls", c.from, c.to, got, err, c.calls)
		}
	}
}

// TestPeerCallFinderLargeTraces checks that results do not depend on the number of spans.
func TestPeerCallFinderLargeTraces(t *testing.T) {
	var f PeerCallFinder
	for _, n := range []int{10, 1000, 10_000, 50} {
		var spans []CallSpan
		for i := range n { // a tree
			id, parent := otlpdata.SpanID{byte(i), byte(i >> 8), 1}, otlpdata.SpanID{byte(i / 2), byte(i / 2 >> 8), 1}
			spans = append(spans, CallSpan{ID: id, Parent: parent, Peer: "peer"})
		}
		calls := 0
		f.Each(spans, func(int) { calls++ })
		if calls != n/2 {
			t.Errorf("%d of %d spans are calls to a peer, want %d", calls, n, n/2)
		}
	}
}

func TestPeerCounter(t *testing.T) {
	var c PeerCounter
	for i := range MaxPeerEdges + 5 {
		c.AddPeer(&CallSpan{Service: "a", Peer: fmt.Sprint(i)})
		c.AddPeer(&CallSpan{Service: "a", Peer: "0", Failed: true, Duration: 1})
	}
	g := c.Graph()
	want := tracestore.Edge{Parent: "a", Child: "0", Calls: MaxPeerEdges + 6, Errors: MaxPeerEdges + 5, Duration: MaxPeerEdges + 5}
	if g.Complete() || !g.Has(tracestore.ReasonLimit) || len(g.Edges) != MaxPeerEdges || g.Edges[0] != want {
		t.Errorf("%d edges, the first %+v, want %+v; %q", len(g.Edges), g.Edges[0], want, g.Text())
	}
}
