package tracecli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// trace is what is kept of a trace.
type trace struct {
	id        string
	spans     []span
	processes map[string]process
	warnings  []string
}

// span is what is kept of a span. Nothing in it is trusted: ids may repeat, times be anything.
type span struct {
	id, parent string // parent is "" for a span without one in its own trace
	process    string
	operation  string
	start      int64 // microseconds since the epoch
	duration   time.Duration
	failed     bool
	warnings   []string
	details    *details // nil unless they are wanted
}

// details are what is shown on demand only: lists as they came, in JSON.
type details struct {
	references, tags, logs json.RawMessage
	parent                 int // which reference is the parent; -1: none
}

type process struct {
	service string
	tags    json.RawMessage // a list; nil unless details are wanted
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

// trace reads a trace.
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

// spanJSON is a span in the API. Its lists are read one element at a time.
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
		s.warnings = appendBounded(s.warnings, text)
		return err
	})
	parent, errParent := s.findParent(&in)
	err = errors.Join(err, errParent, s.findError(in.Tags), r.item())
	s.takeDuration(in.Duration)
	if r.details {
		s.details = &details{references: in.References, tags: in.Tags, logs: in.Logs, parent: parent}
	}
	return s, err
}

// elements calls element for each element of a list, which it must read.
func elements(list json.RawMessage, element func(*reader) error) error {
	if len(list) <= len("[]") {
		return nil
	}
	r := newReader(bytes.NewReader(list), false)
	return r.list(func() error { return element(r) })
}

// findParent takes the first reference that is one of a child, else the first one to a span of the same trace, and returns its place.
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

// findError looks for the tag that says that a span has an error. Few have; in the JSON of others the key does not occur.
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

// timeOf returns a time. One that is none, or beyond all calendars, is 0, which is shown as no time.
func timeOf(n json.Number) int64 {
	v, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil || v < 0 || v > maxMicros {
		return 0
	}
	return v
}

// maxMicros is the latest time and the longest duration, in microseconds, such that their sum can be given in nanoseconds. It is in 2116.
const maxMicros = (1 << 62) / 1000

// takeDuration takes the duration. One that cannot be is 0 and a warning: services that compute it from an end before the start send such.
func (s *span) takeDuration(n json.Number) {
	v, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil || v < 0 || v > maxMicros {
		s.warnings = appendBounded(s.warnings, fmt.Sprintf("its duration cannot be right: %s µs", n))
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

// extent returns when the first span starts and the last one ends, in microseconds; spans without a time do not count.
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

// end returns when the span ends, in microseconds.
func (s *span) end() int64 { return s.start + s.duration.Microseconds() }

// failures returns how many spans have an error.
func (t *trace) failures() (n int) {
	for i := range t.spans {
		if t.spans[i].failed {
			n++
		}
	}
	return n
}
