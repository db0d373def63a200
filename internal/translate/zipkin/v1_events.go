package zipkin

import (
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// agentEvents converts the annotations that are not core annotations to events. Libraries write
// several log fields as a JSON object in one annotation; these become attributes. The name of the
// event is the field `event`, or the text of any other annotation.
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

// readFields appends the members of a JSON object to t.fields and sets name from the member
// `event`. It reports whether value is an object of strings.
func (t *v1Translator) readFields(value string, name *string) bool {
	if !strings.HasPrefix(strings.TrimLeft(value, " \t\r\n"), "{") {
		return false
	}
	s := &t.json
	*s = scanner{b: unsafeBytes(value), text: s.text} // earlier events refer to text until the span is written
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
