package storequery

import (
	"fmt"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Hosts name a peer only of clients, and only if nothing else does.
func TestEdgePeerOf(t *testing.T) {
	host := otlpdata.KeyValue{Key: "server.address", Value: otlpdata.StringValue("host")}
	db := otlpdata.KeyValue{Key: "db.system", Value: otlpdata.StringValue("sql")}
	for _, c := range []struct {
		kind int32
		kvs  []otlpdata.KeyValue
		want string
	}{
		{otlpdata.KindClient, []otlpdata.KeyValue{host}, "host"}, {otlpdata.KindClient, []otlpdata.KeyValue{host, db}, "sql"},
		{otlpdata.KindInternal, []otlpdata.KeyValue{host}, ""}, {otlpdata.KindServer, []otlpdata.KeyValue{db, host}, ""},
	} {
		if got := EdgePeerOf(&otlpdata.Span{Kind: c.kind, Attributes: c.kvs}); got != c.want {
			t.Errorf("kind %d with %v: %q, want %q", c.kind, c.kvs, got, c.want)
		}
	}
}

func TestEdgeCounterLimitsPeers(t *testing.T) {
	c := NewEdgeCounter(&tracestore.EdgeQuery{})
	for i := range MaxPeerEdges + 5 {
		c.AddPeer(&CallSpan{Service: "a", Peer: fmt.Sprint(i), Duration: 7})
		c.AddCall(&CallSpan{Service: "a"}, &CallSpan{Service: "b", Duration: 7})
		c.AddCall(&CallSpan{Service: "a"}, &CallSpan{Service: "a", Kind: otlpdata.KindInternal})
	}
	g := c.Graph()
	if g.Complete() || !g.Has(tracestore.ReasonLimit) || len(g.Edges) != MaxPeerEdges+1 {
		t.Fatalf("%d edges, complete is %t: %s", len(g.Edges), g.Complete(), g.Text())
	}
	last := &g.Edges[len(g.Edges)-1]
	if last.Child != "b" || last.Calls != MaxPeerEdges+5 || last.Durations.Count() != last.Calls {
		t.Errorf("calls between services: %+v", last)
	}
}
