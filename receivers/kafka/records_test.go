package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/zipkincore"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/internal/translate/zipkin"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// encode returns a span in an encoding.
func encode(t *testing.T, encoding, name string) []byte {
	t.Helper()
	b := otlpdata.FromTraces(traces(name), otlpdata.Meta{})
	span := &api_v2.Span{TraceId: make([]byte, 16), SpanId: make([]byte, 8), OperationName: name, StartTime: timestamppb.Now(),
		Duration: durationpb.New(1500), Process: &api_v2.Process{ServiceName: "shop"}}
	span.TraceId[15], span.SpanId[7] = 1, 2
	var out []byte
	var err error
	switch encoding {
	case "otlp_proto":
		return otlp(t, name)
	case "otlp_json":
		out, err = ptraceotlp.NewExportRequestFromTraces(traces(name)).MarshalJSON()
	case "jaeger_proto", "protobuf":
		out, err = proto.Marshal(span)
	case "jaeger_json":
		out, err = protojson.Marshal(span)
	case "zipkin_proto":
		out, _, err = zipkin.ToV2Proto(b, "none")
	case "zipkin_json":
		out, _, err = zipkin.ToV2JSON(b, "none")
	case "zipkin_thrift":
		start := int64(1_700_000_000_000_000)
		s := &zipkincore.Span{TraceID: 1, ID: 2, Name: name, Timestamp: &start, Annotations: []*zipkincore.Annotation{
			{Timestamp: start, Value: "sr", Host: &zipkincore.Endpoint{ServiceName: "shop"}}}}
		buf := thrift.NewTMemoryBuffer()
		p := thrift.NewTBinaryProtocolConf(buf, nil)
		ctx := t.Context()
		err = errors.Join(p.WriteListBegin(ctx, thrift.STRUCT, 1), s.Write(ctx, p), p.WriteListEnd(ctx), p.Flush(ctx))
		out = buf.Bytes()
	default:
		t.Fatalf("encoding %s", encoding)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Spans arrive in every encoding, with their format. Records that are not of the encoding become
// dead letters.
func TestEncodings(t *testing.T) {
	for encoding, format := range map[string]string{"otlp_proto": "otlp", "otlp_json": "otlp", "jaeger_proto": "tracing",
		"protobuf": "tracing", "jaeger_json": "tracing", "zipkin_proto": "zipkin", "zipkin_json": "zipkin", "zipkin_thrift": "zipkin"} {
		t.Run(encoding, func(t *testing.T) {
			c := newCluster(t, 1)
			c.poison("garbage")
			all := names("span", 10)
			for i, name := range all {
				c.writeRecord(name, &kgo.Record{Value: encode(t, encoding, name)})
				if i == 5 {
					c.writeRecord("garbage", &kgo.Record{Value: []byte("{[garbage")})
				}
			}
			var mu sync.Mutex
			batches := 0
			next := &destination{c, func(_ context.Context, b *otlpdata.Batch, _ []string) error {
				mu.Lock()
				defer mu.Unlock()
				batches++
				m := b.Meta()
				if m.Format != format || m.Transport != "kafka" || m.Received.IsZero() || m.Tenant != "" || b.Services()[0].Service != "shop" {
					t.Errorf("batch of %v with %+v", b.Services(), m)
				}
				return nil
			}}
			cfg := c.config()
			cfg.Encoding = encoding
			m := c.start(cfg, next, 64<<20)
			c.awaitCommitted()
			c.expectOnce(all...)
			if m.sample("dead_letters_total") != 1 {
				t.Errorf("%v dead letters", m.sample("dead_letters_total"))
			}
			if batches > 8 {
				t.Errorf("%d records arrived in %d batches", len(all), batches)
			}
		})
	}
}

// Where tenants are separated, a record needs one valid tenant. Records of one tenant are joined.
func TestTenants(t *testing.T) {
	c := newCluster(t, 1)
	c.poison("none", "two", "unknown", "empty")
	of := func(name string, tenants ...string) {
		r := &kgo.Record{Value: otlp(t, name), Headers: []kgo.RecordHeader{{Key: "other", Value: []byte("acme")}}}
		for _, tenant := range tenants {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: "X-Tenant", Value: []byte(tenant)})
		}
		c.writeRecord(name, r)
	}
	of("a", "acme")
	of("b", "acme")
	of("none")
	of("c", "bolt")
	of("two", "acme", "acme")
	of("unknown", "evil")
	of("empty", "")
	of("d", "acme")
	var mu sync.Mutex
	var got []string
	next := &destination{c, func(_ context.Context, b *otlpdata.Batch, names []string) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, b.Meta().Tenant+" "+strings.Join(names, ","))
		return nil
	}}
	cfg := c.config()
	cfg.Tenancy = pipeline.Present(server.TenancyConfig{Enabled: true, Header: "x-tenant", Tenants: []string{"acme", "bolt"}})
	m := c.start(cfg, next, 64<<20)
	c.awaitCommitted()
	if want := []string{"acme a,b", "bolt c", "acme d"}; !slices.Equal(got, want) {
		t.Errorf("batches: %q", got)
	}
	if letters := m.Samples(t, prefix+"dead_letters_total", "reason"); letters["tenant"] != 4 {
		t.Errorf("dead letters: %v", letters)
	}
}

// Headers of records are metadata if the configuration says so.
func TestMetadata(t *testing.T) {
	c := newCluster(t, 1)
	for i, name := range names("span", 4) {
		c.writeRecord(name, &kgo.Record{Value: otlp(t, name), Headers: []kgo.RecordHeader{{Key: "Team", Value: []byte(fmt.Sprint(i / 2))}}})
	}
	var mu sync.Mutex
	var got []string
	next := &destination{c, func(_ context.Context, b *otlpdata.Batch, names []string) error {
		mu.Lock()
		defer mu.Unlock()
		for key, values := range b.Meta().Metadata.All() {
			got = append(got, key+"="+strings.Join(values, ",")+" "+strings.Join(names, ","))
		}
		return nil
	}}
	cfg := c.config()
	cfg.IncludeMetadata = true
	c.start(cfg, next, 64<<20)
	c.awaitCommitted()
	if want := []string{"team=0 span-0,span-1", "team=1 span-2,span-3"}; !slices.Equal(got, want) {
		t.Errorf("metadata: %q", got)
	}
}

// Batches keep their limits on bytes and spans. Records without spans are accepted.
func TestBatchLimits(t *testing.T) {
	c := newCluster(t, 1)
	all := names("span", 40)
	c.write(0, all...)
	c.writeRecord("empty", &kgo.Record{})
	c.poison("empty")
	cfg := c.config()
	cfg.Batch.MaxSpans = 3
	cfg.Batch.MaxSize = 5000
	c.start(cfg, &destination{c, func(_ context.Context, b *otlpdata.Batch, _ []string) error {
		if b.Len() > 3 || b.Len() == 0 {
			t.Errorf("%d spans in one batch", b.Len())
		}
		return nil
	}}, 64<<20)
	c.awaitCommitted()
	c.expectOnce(all...)
}
