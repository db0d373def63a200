package rows

import (
	"errors"
	"fmt"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// PayloadColumns are the columns of the table "payload" that [Decoder.Scan] reads, as the list of a
// SELECT.
const PayloadColumns = "trace_id, start, ids, duration, name, call, origin, shape, texts, rest"

// Scanner reads the values of one row. Rows of a database are Scanners.
type Scanner interface{ Scan(dest ...any) error }

// Payload is one row of the table "payload".
type Payload struct {
	TraceID          otlpdata.TraceID
	SpanID, ParentID otlpdata.SpanID
	Start, Duration  uint64
	Kind             int32
	Name             string
	Origin           string // resource and scope
	Shape            string
	Texts            []string
	Rest             string
}

// Decoder restores spans from rows. It must not be used concurrently.
type Decoder struct {
	row          Payload
	traceID, ids []byte // valid until the next row
	call         string
	dest         []any
	reader       otlpdata.SpanReader
	origin       string             // of the latest row
	resource     *otlpdata.Resource // of that origin
	scope        *otlpdata.Scope
}

// Scan reads the [PayloadColumns] of a row, and the columns after them into rest. The row is valid
// until the next call; its strings may be kept. An error of ids or a call that cannot
// be read is a tracestore.DamagedError.
func (d *Decoder) Scan(s Scanner, rest ...any) (*Payload, error) {
	r := &d.row
	d.dest = append(d.dest[:0], &d.traceID, &r.Start, &d.ids, &r.Duration, &r.Name, &d.call, &r.Origin, &r.Shape,
		&r.Texts, &r.Rest)
	if err := s.Scan(append(d.dest, rest...)...); err != nil {
		return nil, err
	}
	if len(d.traceID) != len(r.TraceID) {
		return nil, damaged(errors.New("trace id has the wrong length"))
	}
	copy(r.TraceID[:], d.traceID)
	var err error
	if r.SpanID, r.ParentID, err = SplitIDs(d.ids); err != nil {
		return nil, damaged(err)
	}
	call, err := ParseCall(d.call)
	if err != nil {
		return nil, damaged(err)
	}
	r.Kind = call.Kind
	return r, nil
}

// Span decodes a row. Resource and Scope of the result may be kept, and are the same pointers for
// consecutive rows with the same origin. The rest is valid until the next call. An error is a
// tracestore.DamagedError.
func (d *Decoder) Span(p *Payload) (tracestore.Span, error) {
	if err := d.readOrigin(p); err != nil {
		return tracestore.Span{}, err
	}
	raw, err := p.AppendRaw(nil)
	if err != nil {
		return tracestore.Span{}, err
	}
	s, err := d.reader.Read(raw)
	if err != nil {
		return tracestore.Span{}, p.damaged(err)
	}
	if s.TraceID != p.TraceID || s.SpanID != p.SpanID {
		return tracestore.Span{}, p.damaged(errors.New("parts have other ids than the row"))
	}
	return tracestore.Span{Resource: d.resource, Scope: d.scope, Span: s}, nil
}

// readOrigin decodes the origin of a row unless the previous row had the same.
func (d *Decoder) readOrigin(p *Payload) error {
	if d.resource != nil && d.origin == p.Origin {
		return nil
	}
	r, s, err := readOrigin(p.Origin)
	if err != nil {
		return p.damaged(err)
	}
	d.origin, d.resource, d.scope = p.Origin, &r, &s
	return nil
}

// AppendRaw appends the encoded span, as in otlpdata.Span.Raw, without validating it. An error is a
// tracestore.DamagedError.
func (p *Payload) AppendRaw(dst []byte) ([]byte, error) {
	dst, err := appendRaw(dst, head{traceID: p.TraceID, spanID: p.SpanID, parent: p.ParentID, start: p.Start, duration: p.Duration,
		kind: p.Kind, name: p.Name}, p.Shape, p.Texts, p.Rest)
	if err != nil {
		return dst, p.damaged(err)
	}
	return dst, nil
}

func (p *Payload) damaged(err error) error {
	return damaged(fmt.Errorf("trace %s, span %s: %w", p.TraceID, p.SpanID, err))
}

func damaged(err error) error {
	return tracestore.Damaged("damaged row of the table payload", err)
}
