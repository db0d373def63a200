package storetool

import (
	"bufio"
	"encoding/binary"
	"fmt"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Limits of one exported request.
const (
	maxRequestSpans = 512
	maxRequestBytes = 1 << 20 // exceeded only by a single large span
)

// otlpEncoder writes spans as ExportTraceServiceRequests, in the formats of the file exporter of
// the OpenTelemetry Collector: one JSON object per line, or protobuf messages with a length prefix
// of four bytes, big-endian.
type otlpEncoder struct {
	out    *bufio.Writer
	asJSON bool

	groups []group
	find   map[origin]int
	spans  int
	bytes  int
	batch  []byte
}

// origin identifies a group by pointers, because the tables of a source hold each resource and
// scope once.
type origin struct {
	resource *otlpdata.Resource
	scope    *otlpdata.Scope
}

// group is the spans of one origin.
type group struct {
	origin origin
	spans  [][]byte
}

func otlpFormat(asJSON bool) format {
	suffix := ".pb"
	if asJSON {
		suffix = ".jsonl"
	}
	return format{suffix: suffix, perTenant: true, open: func(out *bufio.Writer) encoder {
		return &otlpEncoder{out: out, asJSON: asJSON, find: map[origin]int{}}
	}}
}

func (e *otlpEncoder) add(r *record) error {
	key := origin{r.resource, r.scope}
	i, ok := e.find[key]
	if !ok {
		i = len(e.groups)
		e.groups = append(e.groups, group{origin: key})
		e.find[key] = i
	}
	raw := otlpdata.AppendSpan(nil, r.span)
	e.groups[i].spans = append(e.groups[i].spans, raw)
	e.spans++
	if e.bytes += len(raw); e.spans < maxRequestSpans && e.bytes < maxRequestBytes {
		return nil
	}
	return e.flush()
}

// flush writes the collected spans as one request.
func (e *otlpEncoder) flush() error {
	if e.spans == 0 {
		return nil
	}
	b := e.batch[:0]
	for _, g := range e.groups {
		b = otlpdata.AppendResourceSpans(b, g.origin.resource, g.origin.scope, g.spans...)
	}
	e.batch = b
	clear(e.groups)
	clear(e.find)
	e.groups, e.spans, e.bytes = e.groups[:0], 0, 0
	if e.asJSON {
		return e.writeJSON(b)
	}
	var length [4]byte
	binary.BigEndian.PutUint32(length[:], uint32(len(b)))
	if _, err := e.out.Write(length[:]); err != nil {
		return err
	}
	_, err := e.out.Write(b)
	return err
}

func (e *otlpEncoder) writeJSON(b []byte) error {
	traces, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(b)
	if err != nil {
		return fmt.Errorf("decoding stored spans: %w", err)
	}
	text, err := (&ptrace.JSONMarshaler{}).MarshalTraces(traces)
	if err != nil {
		return err
	}
	_, err = e.out.Write(append(text, '\n'))
	return err
}

func (e *otlpEncoder) close() error {
	if err := e.flush(); err != nil {
		return err
	}
	return e.out.Flush()
}
