package canary

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// Result is the result of a reading.
type Result uint8

// The results of a reading.
const (
	OK      Result = iota // the trace is there, exactly as written
	Late                  // as OK, but an earlier reading missed it
	Missing               // the trace or some of its spans are missing; the rest is correct
	Wrong                 // something differs from what was written
	Failed                // no usable response
	results
)

// String returns the name in metrics and logs.
func (r Result) String() string { return [...]string{"ok", "late", "missing", "wrong", "error"}[r] }

// comparison compares responses with what was written. Tags with keys in ignored that were not sent
// are skipped: another program may have added them.
type comparison struct{ ignored []string }

// traces compares a response that must contain this trace and nothing else. The text describes the
// first difference.
func (c comparison) traces(want *shownTrace, got []shownTrace) (Result, string) {
	switch len(got) {
	case 0:
		return Missing, "trace not found"
	case 1:
		return c.trace(want, &got[0])
	}
	return Wrong, fmt.Sprintf("found %d traces instead of one", len(got))
}

func (c comparison) trace(want, got *shownTrace) (Result, string) {
	if d := differ("trace id", got.TraceID, want.TraceID); d != "" {
		return Wrong, d
	}
	if len(got.Warnings) > 0 {
		return Wrong, fmt.Sprintf("a warning: %q", got.Warnings[0])
	}
	missing := make(map[string]*shownSpan, len(want.Spans))
	for i := range want.Spans {
		missing[want.Spans[i].SpanID] = &want.Spans[i]
	}
	for i := range got.Spans {
		s := &got.Spans[i]
		w := missing[s.SpanID]
		if w == nil {
			return Wrong, fmt.Sprintf("span %q: one copy too many", s.SpanID)
		}
		delete(missing, s.SpanID)
		d := c.span(w, s)
		if d == "" {
			d = c.process(want.Processes[w.ProcessID], got.Processes, s.ProcessID)
		}
		if d != "" {
			return Wrong, fmt.Sprintf("span %s %q: %s", s.SpanID, w.Operation, d)
		}
	}
	if len(missing) > 0 {
		for _, w := range want.Spans { // in order
			if missing[w.SpanID] != nil {
				return Missing, fmt.Sprintf("span %s %q is missing (%d of %d spans are missing)",
					w.SpanID, w.Operation, len(missing), len(want.Spans))
			}
		}
	}
	return OK, ""
}

func (c comparison) span(want, got *shownSpan) string {
	return cmp.Or(
		differ("trace id", got.TraceID, want.TraceID),
		differ("flags", got.Flags, want.Flags),
		differ("operation", got.Operation, want.Operation),
		differ("start time", got.Start, want.Start),
		differ("duration", got.Duration, want.Duration),
		compareReferences(want.References, got.References),
		c.tags("tag", want.Tags, got.Tags),
		c.logs(want.Logs, got.Logs),
		warning(got.Warnings),
	)
}

func warning(warnings []string) string {
	if len(warnings) == 0 {
		return ""
	}
	return fmt.Sprintf("has a warning: %q", warnings[0])
}

func (c comparison) process(want process, got map[string]process, id string) string {
	p, ok := got[id]
	if !ok {
		return fmt.Sprintf("process %q is not in the response", id)
	}
	return cmp.Or(differ("service", p.Service, want.Service), c.tags("process tag", want.Tags, p.Tags))
}

func compareReferences(want, got []reference) string {
	if d := differ("number of references", len(got), len(want)); d != "" {
		return d
	}
	for i := range want {
		if d := differ(fmt.Sprintf("reference %d", i), got[i], want[i]); d != "" {
			return d
		}
	}
	return ""
}

func (c comparison) logs(want, got []logEntry) string {
	if d := differ("number of logs", len(got), len(want)); d != "" {
		return d
	}
	for i := range want {
		d := cmp.Or(differ("time", got[i].At, want[i].At), c.tags("field", want[i].Fields, got[i].Fields))
		if d != "" {
			return fmt.Sprintf("log %d: %s", i, d)
		}
	}
	return ""
}

// tags compares lists of tags in any order. No key repeats in want.
func (c comparison) tags(what string, want, got []tag) string {
	missing := make(map[string]tag, len(want))
	for _, w := range want {
		missing[w.Key] = w
	}
	for _, g := range got {
		w, ok := missing[g.Key]
		switch {
		case ok && !equal(g, w):
			return fmt.Sprintf("%s %q: got %s %s, want %s %s", what, g.Key, g.Type, literal(g.Value), w.Type, literal(w.Value))
		case !ok && !slices.Contains(c.ignored, g.Key):
			return fmt.Sprintf("%s %q: one copy too many", what, g.Key)
		}
		delete(missing, g.Key)
	}
	for _, w := range want {
		if _, ok := missing[w.Key]; ok {
			return fmt.Sprintf("%s %q is missing", what, w.Key)
		}
	}
	return ""
}

// equal reports whether two tags are equal. Only floating-point numbers have several
// representations.
func equal(a, b tag) bool {
	if a.Type != b.Type || a.Type != "float64" {
		return a.Type == b.Type && a.Value == b.Value
	}
	x, okX := a.Value.(json.Number)
	y, okY := b.Value.(json.Number)
	f, errX := x.Float64()
	g, errY := y.Float64()
	return okX && okY && errX == nil && errY == nil && f == g
}

// literal returns a value as JSON, which distinguishes 1 from "1".
func literal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// differ describes a difference, or returns "".
func differ[T comparable](what string, got, want T) string {
	if got == want {
		return ""
	}
	return fmt.Sprintf("%s: got %#v, want %#v", what, got, want)
}
