package otlpdata

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// Signal is what a Batch consists of.
type Signal uint8

// The signals. Their numbers are part of the format of queues on disk.
const (
	SignalTraces Signal = iota // spans
	SignalLogs                 // log records
)

// String returns the name of the signal in configurations: traces or logs.
func (s Signal) String() string {
	if s == SignalLogs {
		return "logs"
	}
	return "traces"
}

// Items returns what users call the items of a Batch: spans or log records.
func (s Signal) Items() string {
	if s == SignalLogs {
		return "log records"
	}
	return "spans"
}

// Key returns the name of a number of items in log lines: spans or log-records.
func (s Signal) Key() string { return strings.ReplaceAll(s.Items(), " ", "-") }

// checkRecord validates an encoded LogRecord (opentelemetry-proto, logs.proto).
func (w *walker) checkRecord(b []byte) error {
	w.items, w.span.Attributes = listLengths{}, w.span.Attributes[:0]
	var f protoenc.Reader
	for pos := 0; pos < len(b); {
		var err error
		if pos, err = f.Next(b, pos); err != nil {
			return err
		}
		switch f.Tag {
		case 1<<3 | protoenc.Fixed64, 11<<3 | protoenc.Fixed64, // times
			2<<3 | protoenc.Varint, 3<<3 | protoenc.Length, 12<<3 | protoenc.Length, // severity, event name
			7<<3 | protoenc.Varint, 8<<3 | protoenc.Fixed32: // dropped attributes, flags
		case 5<<3 | protoenc.Length:
			var body Value
			err = body.decode(f.Data, w.lim.Depth)
		case 6<<3 | protoenc.Length:
			w.span.Attributes, err = w.attribute(w.span.Attributes, &w.items.attributes, f.Data, "")
		case 9<<3 | protoenc.Length:
			err = new(TraceID).decode(f.Data)
		case 10<<3 | protoenc.Length:
			err = new(SpanID).decode(f.Data)
		default:
			err = f.Unknown(0b1111111101110)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Logs returns the log records of a batch with the signal SignalLogs as pdata objects, which belong
// to the caller. Each call decodes them.
func (b *Batch) Logs() (plog.Logs, error) {
	all := plog.NewLogs()
	if b.meta.Signal != SignalLogs {
		return all, errors.New("BUG: log records of a batch of spans are asked for")
	}
	chunks, err := b.chunks()
	if err != nil {
		return all, err
	}
	for _, c := range chunks {
		req := plogotlp.NewExportRequest()
		if err := req.UnmarshalProto(c); err != nil {
			return all, fmt.Errorf("decoding log records: %w", err)
		}
		req.Logs().ResourceLogs().MoveAndAppendTo(all.ResourceLogs())
	}
	return all, nil
}

// FromLogs returns a Batch for pdata objects. Its signal is SignalLogs.
func FromLogs(ld plog.Logs, m Meta) (*Batch, error) {
	enc, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	if err != nil {
		return nil, fmt.Errorf("encoding log records: %w", err)
	}
	m.Signal = SignalLogs
	return FromOTLP(enc, m, Limits{Bytes: math.MaxInt, Spans: math.MaxInt, Depth: maxDepth, Items: math.MaxInt})
}
