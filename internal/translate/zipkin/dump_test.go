package zipkin

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// dump writes a request as text, one line for each thing in it.
type dump struct{ strings.Builder }

func (d *dump) Resource(r *otlpdata.Resource) error {
	fmt.Fprintf(d, "resource%s\n", attributesText(r.Attributes))
	return nil
}

func (d *dump) Scope(s *otlpdata.Scope) error {
	fmt.Fprintf(d, "  scope %q %q%s\n", s.Name, s.Version, attributesText(s.Attributes))
	return nil
}

func (d *dump) Span(s *otlpdata.Span) error {
	fmt.Fprintf(d, "    span %s %s", s.TraceID, s.SpanID)
	if !s.ParentID.IsZero() {
		fmt.Fprintf(d, " parent %s", s.ParentID)
	}
	fmt.Fprintf(d, " %q %s %d..%d", s.Name, s.KindName(), s.Start, s.End)
	if s.StatusCode != 0 || s.StatusMessage != "" {
		fmt.Fprintf(d, " status %d %q", s.StatusCode, s.StatusMessage)
	}
	if s.TraceState != "" {
		fmt.Fprintf(d, " state %q", s.TraceState)
	}
	d.WriteString(droppedText(s.DroppedAttributes) + "\n")
	for _, kv := range s.Attributes {
		fmt.Fprintf(d, "      %s\n", attributeText(&kv))
	}
	for _, e := range s.Events {
		fmt.Fprintf(d, "      event %d %q%s%s\n", e.Time, e.Name, attributesText(e.Attributes), droppedText(e.DroppedAttributes))
	}
	for _, l := range s.Links {
		fmt.Fprintf(d, "      link %s %s %q%s%s\n", l.TraceID, l.SpanID, l.TraceState, attributesText(l.Attributes),
			droppedText(l.DroppedAttributes))
	}
	return nil
}

func attributesText(kvs []otlpdata.KeyValue) string {
	var b strings.Builder
	for i := range kvs {
		b.WriteString(" " + attributeText(&kvs[i]))
	}
	return b.String()
}

func attributeText(kv *otlpdata.KeyValue) string {
	key := kv.Key
	if strings.Contains(key, "\n") { // an attribute is a line
		key = strconv.Quote(key)
	}
	if kv.Value.Kind() == otlpdata.ValueBytes {
		return fmt.Sprintf("%s=bytes % x", key, kv.Value.Bytes())
	}
	return key + "=" + string(kv.Value.AppendJSON(nil))
}

func droppedText(n uint32) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" dropped %d", n)
}

// dumped returns the text of a translated request, or the error.
func dumped(b []byte, err error) string {
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var d dump
	if err := otlpdata.Walk(b, &d); err != nil {
		return "no request: " + err.Error() + "\n"
	}
	return d.String()
}
