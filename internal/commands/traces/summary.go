package traces

import (
	"encoding/json"
	"strconv"
	"time"
)

// summary is a line in the list of traces.
type summary struct {
	id                     string
	start                  int64 // microseconds since the epoch; 0 if unknown
	duration               time.Duration
	spans, errors, orphans int
	root                   string // service and operation of the root
}

// summaryJSON is an element of /api/v3/trace-summaries. Zero members are omitted there.
type summaryJSON struct {
	ID        string      `json:"traceId"`
	Service   string      `json:"rootServiceName"`
	Operation string      `json:"rootOperationName"`
	Start     json.Number `json:"minStartTimeUnixNano"`
	End       json.Number `json:"maxEndTimeUnixNano"`
	Spans     int         `json:"spanCount"`
	Errors    int         `json:"errorSpanCount"`
	Orphans   int         `json:"orphanSpanCount"`
}

// summary decodes a summary.
func (r *reader) summary() (summary, error) {
	var in summaryJSON
	if err := r.dec.Decode(&in); err != nil {
		return summary{}, err
	}
	sum := summary{
		id: in.ID, start: microsOf(in.Start), spans: in.Spans, errors: in.Errors, orphans: in.Orphans,
		root: title(in.Service, in.Operation),
	}
	if end := microsOf(in.End); sum.start > 0 && end > sum.start {
		sum.duration = time.Duration(end-sum.start) * time.Microsecond
	}
	return sum, r.item()
}

// microsOf converts nanoseconds to microseconds; invalid values become 0.
func microsOf(n json.Number) int64 {
	ns, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil || ns < 0 {
		return 0
	}
	return min(ns/1000, maxMicros)
}

// summarize decodes a trace and returns its summary. As in the service, the root is the first span
// without a parent, otherwise the first span with a missing parent, otherwise the first span.
func (r *reader) summarize() (summary, error) {
	t, err := r.trace()
	if err != nil {
		return summary{}, err
	}
	from, to := t.extent()
	sum := summary{id: t.id, start: from, duration: time.Duration(to-from) * time.Microsecond, spans: len(t.spans), errors: t.failures()}
	there := make(map[string]bool, len(t.spans))
	for i := range t.spans {
		there[t.spans[i].id] = true
	}
	const root, orphan, child = 0, 1, 2
	best, rank := -1, child
	for i := range t.spans {
		s, mine := &t.spans[i], child
		switch {
		case s.parent == "":
			mine = root
		case !there[s.parent]:
			mine = orphan
			sum.orphans++
		}
		if best < 0 || mine < rank || mine == rank && uint64(s.start-1) < uint64(t.spans[best].start-1) { // 0 is unknown
			best, rank = i, mine
		}
	}
	if best >= 0 {
		sum.root = title(t.service(&t.spans[best]), t.spans[best].operation)
	}
	return sum, nil
}

// title returns the display name of a span.
func title(service, operation string) string {
	if service == "" && operation == "" {
		return ""
	}
	return clean(service) + ": " + clean(operation)
}
