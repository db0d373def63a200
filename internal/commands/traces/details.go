package traces

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// details prints the details of a span: its id, links, tags and logs.
func (w *waterfall) details(i int32, indent string) {
	s := &w.forest.trace.spans[i]
	w.line(indent, w.screen.paint(dim, "span "+clean(s.id)+w.when(s.start)))
	w.links(indent, s.details)
	w.tags(indent, s.details.tags)
	err := elements(s.details.logs, func(list *reader) error {
		var log struct {
			At     json.Number     `json:"timestamp"`
			Fields json.RawMessage `json:"fields"`
		}
		if err := list.dec.Decode(&log); err != nil {
			return err
		}
		w.line(indent, w.screen.paint(dim, "log"+w.when(timeOf(log.At))))
		w.tags(indent+"  ", log.Fields)
		return nil
	})
	w.unreadable(indent, err)
	if p := w.forest.trace.processes[s.process]; !w.printed[s.process] && len(p.tags) > len("[]") {
		w.printed[s.process] = true
		w.line(indent, w.screen.paint(dim, "process "+clean(s.process)+" (for all its spans)"))
		w.tags(indent+"  ", p.tags)
	}
}

// when formats a time as an offset to the start of the trace.
func (w *waterfall) when(at int64) string {
	if at == 0 {
		return ", no time"
	}
	d := time.Duration(at-w.from) * time.Microsecond
	if d < 0 {
		return ", at " + d.String()
	}
	return ", at +" + d.String()
}

// links prints the references except the parent, which the tree shows.
func (w *waterfall) links(indent string, d *details) {
	i := -1
	err := elements(d.references, func(list *reader) error {
		var ref reference
		if err := list.dec.Decode(&ref); err != nil {
			return err
		}
		if i++; i != d.parent {
			w.line(indent, fmt.Sprintf("link to span %s of trace %s (%s)", clean(ref.SpanID), clean(ref.TraceID), clean(ref.Type)))
		}
		return nil
	})
	w.unreadable(indent, err)
}

// tags prints a list of tags.
func (w *waterfall) tags(indent string, tags json.RawMessage) {
	err := elements(tags, func(list *reader) error {
		var t tag
		if err := list.dec.Decode(&t); err != nil {
			return err
		}
		w.line(indent, clean(t.Key), " = ", valueText(t.Value))
		return nil
	})
	w.unreadable(indent, err)
}

// unreadable prints an error of decoding a list.
func (w *waterfall) unreadable(indent string, err error) {
	if err != nil {
		w.line(indent, w.screen.paint(yellow, "? unreadable: "+clean(err.Error())))
	}
}

// valueText returns a value as JSON. Strings have no quotes, unless they could be mistaken for
// something else.
func valueText(v json.RawMessage) string {
	var s string
	if len(v) == 0 || v[0] != '"' || json.Unmarshal(v, &s) != nil {
		return clean(string(v))
	}
	if s == "" || strings.TrimSpace(s) != s || json.Valid([]byte(s)) {
		return clean(string(v))
	}
	return clean(s)
}
