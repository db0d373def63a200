package tracestore

import (
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// The most specific attribute decides, whatever their order; messages are known by the kind alone.
func TestConnectionOf(t *testing.T) {
	for _, c := range []struct {
		kind int32
		keys []string
		want Connection
	}{
		{otlpdata.KindClient, nil, ConnectionUnknown},
		{otlpdata.KindClient, []string{"x", "http.url", "http.method"}, ConnectionHTTP},
		{otlpdata.KindServer, []string{"http.request.method", "rpc.system"}, ConnectionRPC},
		{otlpdata.KindServer, []string{"rpc.system", "rpc.grpc.status_code"}, ConnectionGRPC},
		{otlpdata.KindClient, []string{"url.full", "db.system.name"}, ConnectionDatabase},
		{otlpdata.KindClient, []string{"db.system", "messaging.system"}, ConnectionMessaging},
		{otlpdata.KindProducer, []string{"http.method"}, ConnectionMessaging},
	} {
		s := otlpdata.Span{Kind: c.kind}
		for _, key := range c.keys {
			s.Attributes = append(s.Attributes, otlpdata.KeyValue{Key: key})
		}
		if got := ConnectionOf(&s); got != c.want {
			t.Errorf("kind %d with %v: %q, want %q", c.kind, c.keys, got, c.want)
		}
	}
	if got := ConnectionOfCall(ConnectionGRPC, ConnectionUnknown); got != ConnectionGRPC {
		t.Errorf("unknown child of gRPC: %q", got)
	}
	if got := Connection(99).String(); got != "" {
		t.Errorf("undefined type is %q", got)
	}
}

func TestInnerCalls(t *testing.T) {
	for _, c := range []struct {
		parent, child string
		kind          int32
		want          bool
	}{{"a", "a", otlpdata.KindInternal, true}, {"a", "a", otlpdata.KindServer, false}, {"a", "a", otlpdata.KindConsumer, false},
		{"a", "b", otlpdata.KindInternal, false}} {
		if got := IsInnerCall(c.parent, c.child, c.kind); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
