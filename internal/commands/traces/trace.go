package traces

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// trace holds the parts of a trace that are shown.
type trace struct {
	id        string
	spans     []span
	processes map[string]process
	warnings  []string
}

// span holds the parts of a span that are shown. The data is not trusted: ids may repeat, and times
// may be arbitrary.
type span struct {
	id, parent string // parent is "" if the span has no parent in its trace
	process    string
	operation  string
	start      int64 // microseconds since the epoch
	duration   time.Duration
	failed     bool
	warnings   []string
	details    *details // nil unless requested
}

// details holds the undecoded JSON lists that are shown with -v.
type details struct {
	references, tags, logs json.RawMessage
	parent                 int // index of the parent reference; -1 if there is none
}

type process struct {
	service string
	tags    json.RawMessage // a list; nil unless details are requested
}

type reference struct {
	Type    string `json:"refType"`
	TraceID string `json:"traceID"`
	SpanID  string `json:"spanID"`
}

const childOf = "CHILD_OF"

type tag struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// trace decodes a trace.
func (r *reader) trace() (*trace, error) {
	t := &trace{processes: map[string]process{}}
	err := r.object(func(key string) error {
		switch key {
		case "traceID":
			return r.text(&t.id)
		case "spans":
			return r.list(func() error {
				s, err := r.span()
				t.spans = append(t.spans, s)
				return err
			})
		case "processes":
			return r.object(func(id string) (err error) {
				t.processes[id], err = r.process()
				return err
			})
		case "warnings":
			return r.warnings(&t.warnings)
		}
		return r.skip()
	})
	return t, errors.Join(err, r.item())
}

func (r *reader) process() (p process, err error) {
	err = r.object(func(key string) error {
		switch key {
		case "serviceName":
			return r.text(&p.service)
		case "tags":
			if r.details {
				return r.dec.Decode(&p.tags)
			}
		}
		return r.skip()
	})
	return p, errors.Join(err, r.item())
}

// spanJSON is a span in the API. Its lists are decoded one element at a time.
type spanJSON struct {
	TraceID    string          `json:"traceID"`
	ID         string          `json:"spanID"`
	Operation  string          `json:"operationName"`
	Process    string          `json:"processID"`
	Start      json.Number     `json:"startTime"`
	Duration   json.Number     `json:"duration"`
	References json.RawMessage `json:"references"`
	Tags       json.RawMessage `json:"tags"`
	Logs       json.RawMessage `json:"logs"`
	Warnings   json.RawMessage `json:"warnings"`
}

func (r *reader) span() (s span, err error) {
	var in spanJSON
	if err := r.dec.Decode(&in); err != nil {
		return s, err
	}
	s = span{id: in.ID, process: r.shared(in.Process), operation: r.shared(in.Operation), start: timeOf(in.Start)}
	err = elements(in.Warnings, func(list *reader) error {
		var text string
		err := list.text(&text)
		s.warnings = appendLimited(s.warnings, text)
		return err
	})
	parent, errParent := s.findParent(&in)
	err = errors.Join(err, errParent, s.findError(in.Tags), r.item())
	s.setDuration(in.Duration)
	if r.details {
		s.details = &details{references: in.References, tags: in.Tags, logs: in.Logs, parent: parent}
	}
	return s, err
}

// elements calls element for each element of a list; element must decode it.
func elements(list json.RawMessage, element func(*reader) error) error {
	if len(list) <= len("[]") {
		return nil
	}
	r := newReader(bytes.NewReader(list), false)
	return r.list(func() error { return element(r) })
}

// findParent sets the parent to the first CHILD_OF reference, otherwise the first reference to a
// span of the same trace, and returns the index of the reference, or -1.
func (s *span) findParent(in *spanJSON) (at int, err error) {
	at = -1
	i, isChild := -1, false
	err = elements(in.References, func(list *reader) error {
		var ref reference
		err := list.dec.Decode(&ref)
		i++
		if ref.TraceID == in.TraceID && (at < 0 || ref.Type == childOf && !isChild) {
			at, isChild, s.parent = i, ref.Type == childOf, ref.SpanID
		}
		return err
	})
	return at, err
}

// findError looks for the tag error. Most spans do not have it, so the JSON is searched for the key
// before it is decoded.
func (s *span) findError(tags json.RawMessage) error {
	if !bytes.Contains(tags, []byte(`"error"`)) {
		return nil
	}
	return elements(tags, func(list *reader) error {
		var t tag
		err := list.dec.Decode(&t)
		if value := string(t.Value); t.Key == "error" && (value == "true" || value == `"true"`) {
			s.failed = true
		}
		return err
	})
}

// timeOf parses a time in microseconds. Invalid times become 0, which is shown as no time.
func timeOf(n json.Number) int64 {
	v, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil || v < 0 || v > maxMicros {
		return 0
	}
	return v
}

// maxMicros is the maximum time (in the year 2116) and the maximum duration, in microseconds. Their
// sum in nanoseconds does not overflow.
const maxMicros = (1 << 62) / 1000

// setDuration sets the duration. An invalid duration becomes 0 with a warning: some services
// subtract an end time that is before the start.
func (s *span) setDuration(n json.Number) {
	v, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil || v < 0 || v > maxMicros {
		s.warnings = appendLimited(s.warnings, fmt.Sprintf("invalid duration: %s µs", n))
		return
	}
	s.duration = time.Duration(v) * time.Microsecond
}

// service returns the name of the span's service.
func (t *trace) service(s *span) string {
	if p, ok := t.processes[s.process]; ok {
		return p.service
	}
	return "(no process)"
}

// extent returns the start of the first span and the end of the last one, in microseconds. Spans
// without a start time are ignored.
func (t *trace) extent() (from, to int64) {
	for i := range t.spans {
		s := &t.spans[i]
		if s.start == 0 {
			continue
		}
		if from == 0 || s.start < from {
			from = s.start
		}
		to = max(to, s.end())
	}
	return from, to
}

// end returns the end time of the span, in microseconds.
func (s *span) end() int64 { return s.start + s.duration.Microseconds() }

// failures returns the number of spans with an error.
func (t *trace) failures() (n int) {
	for i := range t.spans {
		if t.spans[i].failed {
			n++
		}
	}
	return n
}
