package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// fixed is a Consumer with a preset result.
type fixed struct{ err error }

func (f fixed) Consume(context.Context, *otlpdata.Batch) error { return f.err }

// spansOver returns a batch that arrived over a transport.
func spansOver(transport string, spans int) *otlpdata.Batch {
	td := ptrace.NewTraces()
	scope := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for range spans {
		scope.Spans().AppendEmpty()
	}
	return otlpdata.FromTraces(td, otlpdata.Meta{Transport: transport})
}

// A receiver counts its spans by transport and remembers the last refusal. A receiver that replaces
// it continues to count.
func TestReceived(t *testing.T) {
	now := time.Unix(100, 0)
	m := NewMetrics(func() time.Time { return now })
	m.Register(prometheus.NewRegistry())
	otlp := Component{Kind: "receiver", ID: "otlp"}
	var fail error
	send := func(transport string, spans int) {
		e := NewReceiverEdge(fixed{fail}, m, otlp, pipeline.Settings{Logger: zap.NewNop()}, func() WaitLimit { return WaitLimit{} })
		_ = e.Consume(t.Context(), spansOver(transport, spans)) // counted
	}
	send("grpc", 3)
	send("http", 2)
	fail = errors.New("disk is full" + strings.Repeat("!", 2*maxRefusalText))
	send("grpc", 5)
	fail = &pipeline.Partial{Rejected: 1, Err: errors.New("too old")}
	send("http", 4)
	r := m.Received(otlp)
	now = now.Add(time.Second)
	r.RefuseRequests("tcp", "undecodable", 2)
	r.RefuseRequests("grpc", "undecodable", 0)
	var got []string
	open := []status.Listener{{Transport: "udp", Address: "b"}, {Transport: "http", Address: "c"}, {Transport: "udp", Address: "a"}}
	for _, one := range r.Receivers(open) {
		text := fmt.Sprintf("%s %s %v: %d, %d refused, %d requests",
			one.Component, one.Transport, one.Addresses, one.Received, one.Refused, one.RefusedRequests)
		if one.Refusal != nil {
			text += fmt.Sprintf(", %.15s at %d", one.Refusal.Reason, one.Refusal.At.Unix())
		}
		if one.Refusal != nil && len(one.Refusal.Reason) > maxRefusalText {
			t.Errorf("reason of %d bytes", len(one.Refusal.Reason))
		}
		got = append(got, text)
	}
	want := []string{
		"otlp grpc []: 8, 5 refused, 0 requests, disk is full!!! at 100",
		"otlp http [c]: 6, 1 refused, 0 requests, 1 items rejecte at 100",
		"otlp tcp []: 0, 0 refused, 2 requests, undecodable at 101",
		"otlp udp [a b]: 0, 0 refused, 0 requests",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}
