package thriftudp

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
)

func newTestClients(t testing.TB, limit int) *clients {
	t.Helper()
	c, err := newClients(pipelinetest.NewFixture("thriftudp", 0).Settings, limit)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The totals that a client sends with each batch are added to counters as differences.
func TestClientStats(t *testing.T) {
	f := start(t, testConfig(), 64<<20, &pipelinetest.Sink{})
	id := "5a4c1b0e"
	send := func(port string, enc native.Encoding, seqNo, full, large, failed int64) {
		args := batch("a")
		args.Batch.Process.Tags = []*jaeger.Tag{{Key: "client-uuid", VType: jaeger.TagType_STRING, VStr: &id}}
		args.Batch.SeqNo = &seqNo
		args.Batch.Stats = &jaeger.ClientStats{FullQueueDroppedSpans: full, TooLargeDroppedSpans: large, FailedToEmitSpans: failed}
		const received = "tracing_agent_client_stats_batches_received"
		before := f.metrics()[received]
		f.send(port, message(t, enc, "emitBatch", args))
		f.await(func() bool { return f.metrics()[received] > before })
	}
	expect := func(received, sent, full, large, failed float64) {
		t.Helper()
		f.expect(map[string]float64{
			"tracing_agent_client_stats_batches_received":           received,
			"tracing_agent_client_stats_batches_sent":               sent,
			"tracing_agent_client_stats_spans_dropped full-queue":   full,
			"tracing_agent_client_stats_spans_dropped too-large":    large,
			"tracing_agent_client_stats_spans_dropped send-failure": failed,
			"tracing_agent_client_stats_connected_clients":          1,
		})
	}
	send("compact", native.Compact, 10, 100, 200, 300)
	expect(1, 0, 0, 0, 0) // only the baseline
	send("compact", native.Compact, 13, 101, 202, 303)
	expect(2, 3, 1, 2, 3)
	send("binary", native.Binary, 12, 100, 201, 302)
	expect(3, 3, 1, 2, 3) // out of order
	send("binary", native.Binary, 14, 90, 202, 304)
	expect(4, 4, 1, 2, 4) // a total decreased
}

func TestClientsWithoutStatsAreNotTracked(t *testing.T) {
	c := newTestClients(t, 10)
	c.record(native.ClientStats{SeqNo: 1, HasSeqNo: true})
	c.record(native.ClientStats{ID: "a"})
	c.record(native.ClientStats{ID: strings.Repeat("a", maxClientID+1), SeqNo: 1, HasSeqNo: true})
	if len(c.byID) != 0 {
		t.Errorf("tracked clients: %v, want none", c.byID)
	}
}

func TestTrackedClientsAreLimited(t *testing.T) {
	c := newTestClients(t, 3)
	for i := range 10 {
		c.record(native.ClientStats{ID: fmt.Sprint(i), SeqNo: 1, HasSeqNo: true})
	}
	if n := c.connected(); n != 3 {
		t.Errorf("%v clients, want 3", n)
	}
}

// The statistics of a client that has been silent for an hour are removed within the next 15
// minutes.
func TestClientsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := pipelinetest.NewFixture("thriftudp", 0)
		c, err := newClients(f.Settings, 10)
		if err != nil {
			t.Fatal(err)
		}
		c.record(native.ClientStats{ID: "old", SeqNo: 1, HasSeqNo: true})
		time.Sleep(40 * time.Minute)
		c.record(native.ClientStats{ID: "young", SeqNo: 1, HasSeqNo: true})
		if n := c.connected(); n != 2 {
			t.Errorf("%v clients after 40 minutes, want 2", n)
		}
		time.Sleep(clientExpiry + expiryInterval - 45*time.Minute)
		if n := c.connected(); n != 1 {
			t.Errorf("%v clients after one was silent for an hour, want 1", n)
		}
		started := f.Logs.FilterMessage("received batch from a new client, starting to keep stats")
		expired := f.Logs.FilterMessage("have not heard from a client for a while, freeing stats").All()
		if started.Len() != 2 || len(expired) != 1 || expired[0].ContextMap()["client-uuid"] != "old" ||
			expired[0].ContextMap()["last-message"] == nil {
			t.Errorf("log: %v", f.Logs.All())
		}
	})
}
