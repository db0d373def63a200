package doctor

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// subjectKey is the attribute of a test span that names the receiver.
const subjectKey = "doctor.receiver"

// testSpan is a span that is sent through a receiver.
type testSpan struct {
	trace         otlpdata.TraceID
	id            otlpdata.SpanID
	name, subject string
	start         time.Time
	duration      time.Duration
}

func newTestSpan(env pipeline.Env, subject string) *testSpan {
	const duration = time.Millisecond
	s := &testSpan{name: "doctor", subject: subject, duration: duration,
		start: env.Now().Add(-duration).Truncate(time.Microsecond)} // Thrift and Zipkin have microseconds
	binary.BigEndian.PutUint64(s.trace[:8], env.Rand()|1)
	binary.BigEndian.PutUint64(s.trace[8:], env.Rand()|1)
	binary.BigEndian.PutUint64(s.id[:], env.Rand()|1)
	return s
}

// encode returns the span as an ExportTraceServiceRequest.
func (s *testSpan) encode() []byte {
	var b otlpdata.Builder
	b.Resource([]otlpdata.KeyValue{{Key: "service.name", Value: otlpdata.StringValue(serviceName)}})
	b.Scope("", "", nil)
	b.Span(&otlpdata.Span{
		TraceID: s.trace, SpanID: s.id, Name: s.name, Kind: otlpdata.KindInternal, Flags: 1,
		Start: uint64(s.start.UnixNano()), End: uint64(s.start.Add(s.duration).UnixNano()),
		Attributes: []otlpdata.KeyValue{{Key: subjectKey, Value: otlpdata.StringValue(s.subject)}},
	})
	return b.Bytes()
}

// batch returns the span as a batch, for translations to other formats.
func (s *testSpan) batch() (*otlpdata.Batch, error) {
	return otlpdata.FromOTLP(s.encode(), otlpdata.Meta{}, otlpdata.DefaultLimits())
}

// isTimeout reports whether a request ended because of a time limit.
func isTimeout(err error) bool {
	timeout := net.Error(nil)
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
