package zipkin

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Exporters that convert OTLP spans to Zipkin pack data without a Zipkin field into text, with
// parts separated by bars:
//
//	annotation:      name|attributes|dropped
//	tag otlp.link.N: trace id|span id|trace state|attributes|dropped
// attributes is a JSON object, dropped the number of dropped attributes. Only the object may
// contain bars.

// unpackEvents unpacks packed annotations. Any other text remains the name of the event.
func (t *translator) unpackEvents() {
	for i := range t.span.Events {
		e := &t.span.Events[i]
		name, rest, ok := strings.Cut(e.Name, "|")
		if !ok {
			continue
		}
		if attributes, dropped, ok := t.unpack(rest); ok {
			e.Name, e.Attributes, e.DroppedAttributes = name, attributes, dropped
		}
	}
}

// numberedLink is a link with the number of its tag. Links are sorted by these numbers.
type numberedLink struct {
	number int
	otlpdata.Link
}

// linkTag reads a tag with a packed link. It returns false for any other tag.
func (t *translator) linkTag(key, value string) bool {
	number, ok := strings.CutPrefix(key, linkPrefix)
	if !ok {
		return false
	}
	const last = 127
	n, ok := smallInt(number)
	if !ok || number == "" || n > last {
		return false
	}
	l := numberedLink{number: int(n)}
	if !t.unpackLink(&l.Link, value) {
		return false
	}
	t.links = append(t.links, l)
	return true
}

func (t *translator) unpackLink(l *otlpdata.Link, s string) (ok bool) {
	trace, s, ok1 := strings.Cut(s, "|")
	span, s, ok2 := strings.Cut(s, "|")
	state, s, ok3 := strings.Cut(s, "|")
	if !ok1 || !ok2 || !ok3 || !parseHex(l.TraceID[:], trace) || !parseHex(l.SpanID[:], span) {
		return false
	}
	l.TraceState = state
	l.Attributes, l.DroppedAttributes, ok = t.unpack(s)
	return ok
}

// unpackLinks adds the links from tags to the span, in order.
func (t *translator) unpackLinks() {
	slices.SortStableFunc(t.links, func(a, b numberedLink) int { return cmp.Compare(a.number, b.number) })
	for i := range t.links {
		t.span.Links = append(t.span.Links, t.links[i].Link)
	}
}

// unpack reads the attributes and the dropped count at the end of a packed text.
func (t *translator) unpack(s string) (attributes []otlpdata.KeyValue, dropped uint32, ok bool) {
	bar := strings.LastIndexByte(s, '|')
	if bar < 0 {
		return nil, 0, false
	}
	n, ok := smallInt(s[bar+1:])
	if !ok || n > math.MaxUint32 {
		return nil, 0, false
	}
	from := len(t.attributes)
	if !t.readAttributes(unsafeBytes(s[:bar])) {
		t.attributes = t.attributes[:from]
		return nil, 0, false
	}
	return t.attributes[from:len(t.attributes):len(t.attributes)], uint32(n), true
}

// readAttributes appends the members of a JSON object to t.attributes.
func (t *translator) readAttributes(b []byte) bool {
	p := &t.packed
	*p = scanner{b: b, text: p.text} // earlier values refer to text until the span is written
	if p.kind() != jsonObject {
		return false
	}
	for key, ok := p.object(); ok; key, ok = p.member() {
		if len(t.attributes) >= t.opt.Limits.Items {
			return false
		}
		t.attributes = append(t.attributes, otlpdata.KeyValue{Key: key, Value: jsonValue(p)})
	}
	return p.end() == nil
}

// jsonValue reads an attribute value. Arrays and objects become their JSON text.
func jsonValue(p *scanner) otlpdata.Value {
	switch p.kind() {
	case jsonNull:
		p.skip()
		return otlpdata.Value{}
	case jsonBool:
		return otlpdata.BoolValue(p.bool())
	case jsonNumber:
		return jsonNumberValue(p.number())
	}
	return otlpdata.StringValue(p.scalar())
}

// jsonNumberValue returns an integer if the number is whole: JSON does not distinguish integers
// from floats.
func jsonNumberValue(token string) otlpdata.Value {
	if i, err := strconv.ParseInt(token, 10, 64); err == nil {
		return otlpdata.IntValue(i)
	}
	f, _ := strconv.ParseFloat(token, 64) // numbers out of range become infinite
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return otlpdata.IntValue(int64(f))
	}
	return otlpdata.DoubleValue(f)
}
