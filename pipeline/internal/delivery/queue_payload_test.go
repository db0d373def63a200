package delivery

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// deepBatch returns a batch of objects with an attribute that is nested more deeply than the
// default limit of receivers.
func deepBatch(meta otlpdata.Meta) *otlpdata.Batch {
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	v := pcommon.NewValueSlice()
	v.CopyTo(span.Attributes().PutEmpty("deep"))
	inner := span.Attributes().PutEmpty("deep")
	for range 100 {
		inner = inner.SetEmptySlice().AppendEmpty()
	}
	return otlpdata.FromTraces(td, meta)
}

func payloadOf(t testing.TB, b *otlpdata.Batch) []byte {
	t.Helper()
	parts, err := encodeBatch(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Join(parts, nil)
}

// Payloads are decoded without limits, because receivers may have higher limits than the default.
func TestPayload(t *testing.T) {
	meta := otlpdata.Meta{Tenant: "a\x00b", Format: "otlp", Transport: "grpc", Received: time.Unix(5, 7)}
	deep := deepBatch(meta)
	joined, err := otlpdata.Concat(deep, deepBatch(meta), deep)
	if err != nil {
		t.Fatal(err)
	}
	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("text")
	logs, err := otlpdata.FromLogs(ld, otlpdata.Meta{Tenant: "a", Format: "otlp", Transport: "grpc", Received: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []*otlpdata.Batch{deep, joined, logs, otlpdata.FromTraces(ptrace.NewTraces(), otlpdata.Meta{})} {
		payload := payloadOf(t, b)
		got, err := decodeBatch(payload)
		if err != nil {
			t.Fatal(err)
		}
		if got.Len() != b.Len() || got.Meta().Signal != b.Meta().Signal || !bytes.Equal(payloadOf(t, got), payload) {
			t.Errorf("%d spans became %d, %+v became %+v", b.Len(), got.Len(), b.Meta(), got.Meta())
		}
	}
}

// Payloads that are cut, too long, or of another version are errors.
func TestNoPayload(t *testing.T) {
	payload := payloadOf(t, deepBatch(otlpdata.Meta{Tenant: "a"}))
	for n := range payload {
		if _, err := decodeBatch(payload[:n:n]); err == nil {
			t.Errorf("no error for a payload cut to %d bytes", n)
		}
	}
	if _, err := decodeBatch(append(bytes.Clone(payload), 0)); !errors.Is(err, errPayload) {
		t.Errorf("with trailing data: %v", err)
	}
	if _, err := decodeBatch(append([]byte{payloadVersion + 2}, payload[1:]...)); !errors.Is(err, errPayload) {
		t.Errorf("with another version: %v", err)
	}
}

// Any bytes are an error, or a batch that stays the same when it is encoded and decoded again.
func FuzzDecodeBatch(f *testing.F) {
	f.Add([]byte{})
	f.Add(payloadOf(f, deepBatch(otlpdata.Meta{Tenant: "a", Format: "zipkin", Transport: "udp", Received: time.Unix(1, 0)})))
	two, err := otlpdata.Concat(deepBatch(otlpdata.Meta{}), deepBatch(otlpdata.Meta{}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(payloadOf(f, two))
	f.Add([]byte{payloadVersion, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, payload []byte) {
		b, err := decodeBatch(payload)
		if err != nil {
			return
		}
		again, err := decodeBatch(payloadOf(t, b))
		if err != nil || again.Len() != b.Len() || again.Meta() != b.Meta() {
			t.Errorf("%v: %d spans, then %d", err, b.Len(), again.Len())
		}
	})
}
