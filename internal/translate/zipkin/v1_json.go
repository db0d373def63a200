package zipkin

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// readJSON reads an array of v1 spans and writes each span.
func (t *v1Translator) readJSON(b []byte) error {
	s := &t.json
	s.reset(b)
	for ok := s.array(); ok; ok = s.element() {
		t.in.reset()
		ids := t.readSpan()
		if s.err != nil {
			break
		}
		if err := ids.parse(&t.in); err != nil {
			return err
		}
		if err := t.writeV1(); err != nil {
			return err
		}
	}
	if err := s.end(); err != nil {
		return fmt.Errorf("zipkinv1: %w", err)
	}
	return nil
}

// readSpan reads a span except its ids, which it returns. If a member is repeated, the last one is
// used.
func (t *v1Translator) readSpan() (ids v1IDs) {
	s, in := &t.json, &t.in
	for key, ok := s.object(); ok; key, ok = s.member() {
		switch key {
		case "traceId":
			ids.trace = s.str()
		case "id":
			ids.span = s.str()
		case "parentId":
			ids.parent = s.str()
		case "name":
			in.name = s.str()
		case "timestamp":
			in.timestamp = s.int()
		case "duration":
			in.duration = s.int()
		case "debug":
			in.debug = s.bool()
		case "annotations":
			in.clearAnnotations()
			for ok := s.array(); ok; ok = s.element() {
				t.readAnnotation()
			}
		case "binaryAnnotations":
			in.clearTags()
			for ok := s.array(); ok; ok = s.element() {
				t.readBinaryAnnotation()
			}
		default:
			s.skip()
		}
	}
	return ids
}

func (t *v1Translator) readAnnotation() {
	s := &t.json
	var time int64
	var value string
	var host v1Host
	for key, ok := s.object(); ok; key, ok = s.member() {
		switch key {
		case "timestamp":
			time = s.int()
		case "value":
			value = s.scalar()
		case "endpoint":
			host.endpoint = s.endpoint()
		default:
			s.skip()
		}
	}
	if err := t.in.annotate(time, value, &host); err != nil {
		s.fail(err)
	}
}

// readBinaryAnnotation reads a binary annotation. Its value may have any type; addresses often have
// a boolean value.
func (t *v1Translator) readBinaryAnnotation() {
	s := &t.json
	var tag string
	value := otlpdata.StringValue("")
	var host v1Host
	for key, ok := s.object(); ok; key, ok = s.member() {
		switch key {
		case "key":
			tag = s.str()
		case "value":
			if s.kind() == jsonNull {
				s.skip()
				continue
			}
			if value = jsonValue(s); t.opt.ParseStringTags {
				value = parsed(value)
			}
		case "endpoint":
			host.endpoint = s.endpoint()
		default:
			s.skip()
		}
	}
	if err := t.in.tag(tag, value, &host); err != nil {
		s.fail(err)
	}
}

// v1IDs are the ids of a span in JSON.
type v1IDs struct{ trace, span, parent string }

var (
	errTraceIDLength = errors.New("hex traceId span has wrong length (expected 16 or 32)")
	errTraceIDZero   = errors.New("traceId is zero")
	errIDLength      = errors.New("hex Id has wrong length (expected 16)")
	errIDZero        = errors.New("ID is zero")
)

// parse sets the ids of s. All are required except the parent id.
func (i *v1IDs) parse(s *v1Span) error {
	if err := parseTraceID(&s.traceID, i.trace); err != nil {
		return fmt.Errorf("zipkinV1 span traceId: %w", err)
	}
	if err := parseSpanID(&s.id, i.span); err != nil {
		return fmt.Errorf("zipkinV1 span id: %w", err)
	}
	if i.parent == "" {
		return nil
	}
	if err := parseSpanID(&s.parent, i.parent); err != nil {
		return fmt.Errorf("zipkinV1 span parentId: %w", err)
	}
	return nil
}

func parseTraceID(id *otlpdata.TraceID, s string) error {
	if len(s) != 16 && len(s) != 32 {
		return errTraceIDLength
	}
	if !parseHex(id[:], s) {
		return notHex(s)
	}
	if id.IsZero() {
		return errTraceIDZero
	}
	return nil
}

func parseSpanID(id *otlpdata.SpanID, s string) error {
	if len(s) != 16 {
		return errIDLength
	}
	if !parseHex(id[:], s) {
		return notHex(s)
	}
	if id.IsZero() {
		return errIDZero
	}
	return nil
}

// notHex returns the error for s, which names the first byte that is not a digit.
func notHex(s string) error {
	_, err := hex.DecodeString(s)
	return err
}
