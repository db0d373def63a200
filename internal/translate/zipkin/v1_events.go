package zipkin

import (
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// agentEvents makes events of the annotations that are no core ones. Libraries that had fields to log wrote them as a JSON object, which
// becomes attributes; the field `event` names the event, as the whole text of any other annotation does.
func (t *v1Translator) agentEvents() {
	t.json.text = t.json.text[:0]
	for i := range t.in.annotations {
		a := &t.in.annotations[i]
		if isAgentCore(a.value) {
			continue
		}
		e := otlpdata.Event{Time: nanos(a.time)}
		from := len(t.fields)
		if t.readFields(a.value, &e.Name) {
			e.Attributes = t.fields[from:len(t.fields):len(t.fields)]
		} else {
			t.fields, e.Name = t.fields[:from], a.value
		}
		t.span.Events = append(t.span.Events, e)
	}
}

// readFields appends the members of a JSON object of strings to t.fields, apart from the event's name. It reports whether value is such
// an object.
func (t *v1Translator) readFields(value string, name *string) bool {
	if !strings.HasPrefix(strings.TrimLeft(value, " \t\r\n"), "{") {
		return false
	}
	s := &t.json
	*s = scanner{b: bytesOf(value), text: s.text} // the text of the events before is in use until the span is written
	for key, ok := s.object(); ok; key, ok = s.member() {
		if k := s.kind(); k != jsonString && k != jsonNull {
			return false
		}
		if field := text(key, s.str()); key == "event" {
			*name = field.Value.Str()
		} else {
			t.fields = append(t.fields, field)
		}
	}
	return s.end() == nil
}
