package zipkin

import "fmt"

// readJSON reads an array of spans. Deviations with a clear meaning are accepted: null for an
// absent value, numbers in quotes, numbers as tags. Unknown members are ignored.
func (t *translator) readJSON(b []byte) error {
	s := &t.doc
	s.reset(b)
	for ok := s.array(); ok; ok = s.element() {
		if s.kind() == jsonNull {
			s.skip()
			continue
		}
		t.beginSpan()
		t.spanJSON()
		if s.err != nil {
			break
		}
		if err := t.write(); err != nil {
			s.fail(err)
		}
	}
	return s.end()
}

func (t *translator) spanJSON() {
	s, span := &t.doc, &t.span
	for key, ok := s.object(); ok; key, ok = s.member() {
		switch key {
		case "traceId":
			t.idJSON(key, span.TraceID[:])
		case "id":
			t.idJSON(key, span.SpanID[:])
		case "parentId":
			t.idJSON(key, span.ParentID[:])
		case "name":
			span.Name = s.str()
		case "kind":
			span.Kind = kindOf(s.str())
		case "timestamp":
			span.Start = nanos(s.int())
		case "duration":
			span.End = nanos(s.int())
		case "localEndpoint":
			t.local = s.endpoint()
		case "remoteEndpoint":
			t.remote = s.endpoint()
		case "annotations":
			t.annotationsJSON()
		case "tags":
			t.tagsJSON()
		case "debug":
			t.debug = s.bool() || t.opt.Debug
		default:
			s.skip()
		}
	}
}

// idJSON reads an id, which may have fewer digits than usual. An empty string means no id.
func (t *translator) idJSON(key string, dst []byte) {
	text := t.doc.str()
	if text == "" {
		clear(dst)
		return
	}
	if !parseHex(dst, text) {
		t.doc.fail(fmt.Errorf("%s %.40q must have 1 to %d hexadecimal digits", key, text, 2*len(dst)))
	}
}

// endpoint reads an endpoint of v1 or v2.
func (s *scanner) endpoint() (e endpoint) {
	for key, ok := s.object(); ok; key, ok = s.member() {
		switch key {
		case "serviceName":
			e.service = s.str()
		case "ipv4":
			e.ipv4 = s.str()
		case "ipv6":
			e.ipv6 = s.str()
		case "port":
			e.port = s.int()
		default:
			s.skip()
		}
	}
	return e
}

func (t *translator) annotationsJSON() {
	s := &t.doc
	t.span.Events = t.span.Events[:0]
	for ok := s.array(); ok; ok = s.element() {
		var at int64
		var value string
		for key, ok := s.object(); ok; key, ok = s.member() {
			switch key {
			case "timestamp":
				at = s.int()
			case "value":
				value = s.scalar()
			default:
				s.skip()
			}
		}
		if err := t.annotate(at, value); err != nil {
			s.fail(err)
		}
	}
}

func (t *translator) tagsJSON() {
	s := &t.doc
	t.span.Attributes = t.span.Attributes[:0]
	for key, ok := s.object(); ok; key, ok = s.member() {
		if err := t.tag(key, s.scalar()); err != nil {
			s.fail(err)
		}
	}
}
