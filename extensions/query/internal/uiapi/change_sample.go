package uiapi

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	changeSlices = 12 // number of parts of the range, and of the times before
	changeTraces = 25 // traces of each part
	// maxChangeSpans is the maximum number of spans of the sample.
	maxChangeSpans = 50_000
	// maxSeen is the maximum number of recorded versions, instances and keys of a service in a
	// sample of traces.
	maxSeen = 500
	// Approximate memory in bytes, without texts.
	sightingMemory, serviceMemory = 128, 512
)

// changeSample holds the values in the newest traces from parts of the range and of the times
// before, or all values if the store can tell them.
type changeSample struct {
	periods  *changePeriods
	all      bool // it holds all values
	spans    int  // that were read
	memory   *tracestore.Memory
	bytes    int64 // approximate memory of services
	services map[string]*serviceSample
	windows  map[otlpdata.TraceID][]core.Window // of the parts that have a trace
}

type serviceSample struct {
	versions, instances, keys map[string]*sighting
	instanceKey               int // if all values are known: index of the key of the instances
}

// sighting says where a value was seen. Times are nanoseconds since the Unix epoch.
type sighting struct {
	before, now int    // spans in the times before, and in the range
	first       uint64 // start of the first span in the range
	last        uint64 // start of the last span
	// atEnds is whether the value was seen in each of changePeriods.ends, if all values are known.
	atEnds [2]bool
}

var errSampled = errors.New("sample is large enough")

// read reads the values. It returns which data is missing.
func (c *changeSample) read(slot *core.Slot, p *changePeriods) (missing tracestore.Reasons, err error) {
	c.periods, c.services, c.windows = p, make(map[string]*serviceSample), make(map[otlpdata.TraceID][]core.Window)
	if c.memory, err = tracestore.Reserve(slot.Context(), 0); err != nil {
		return nil, err
	}
	if history, ok := core.SlotAs[storequery.AttributeHistory](slot); ok {
		c.all, missing, err = history.EachAttribute(slot.Context(), slot.Tenant(), p.before[0].From, p.end, c.addTime)
	}
	if c.all || err != nil {
		return missing, err
	}
	return nil, c.readSample(slot)
}

// readSample reads the traces of the sample.
func (c *changeSample) readSample(slot *core.Slot) error {
	var lists [][]otlpdata.TraceID // of each part
	for _, times := range [][]core.Window{c.periods.before, {c.periods.current()}} {
		for _, w := range core.Split(times, changeSlices) {
			ids, err := c.find(slot, w)
			if err != nil {
				return err
			}
			lists = append(lists, ids)
		}
	}
	return c.readTraces(slot, lists)
}

// find returns the newest traces of a part.
func (c *changeSample) find(slot *core.Slot, w core.Window) (ids []otlpdata.TraceID, _ error) {
	q := tracestore.Query{Tenant: slot.Tenant(), From: w.From, To: w.To, Limit: changeTraces, Budget: slot.Budget()}
	found, err := slot.Store().Find(slot.Context(), q, tracestore.WantIDs)
	if err != nil {
		return nil, err
	}
	for r, err := range found.All {
		if err != nil {
			return nil, err
		}
		c.windows[r.ID] = append(c.windows[r.ID], w)
		ids = append(ids, r.ID)
	}
	return ids, nil
}

// readTraces reads one trace of each part in turn, and records the spans that start in the parts.
func (c *changeSample) readTraces(slot *core.Slot, lists [][]otlpdata.TraceID) error {
	var refs []tracestore.TraceRef
	for n := range changeTraces {
		for _, ids := range lists {
			if n < len(ids) && !slices.Contains(refs, tracestore.TraceRef{ID: ids[n]}) {
				refs = append(refs, tracestore.TraceRef{ID: ids[n]})
			}
		}
	}
	read := 0
	for piece, err := range slot.Store().Traces(slot.Context(), slot.Tenant(), refs) {
		damage, err := tracestore.DamageOf(err)
		if err == nil && damage.Complete() {
			err = c.memory.Resize(c.bytes + int64(piece.Spans.Size()))
		}
		if err != nil || !damage.Complete() || read >= maxChangeSpans {
			return err
		}
		err = tracestore.WalkSpans(piece.Spans, func(s tracestore.Span) error {
			read++
			start := time.Unix(0, int64(s.Start))
			if slices.ContainsFunc(c.windows[piece.ID], func(w core.Window) bool { return !start.Before(w.From) && !start.After(w.To) }) {
				c.addSpan(s, !start.Before(c.periods.start))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return c.memory.Resize(c.bytes)
}

// addSpan records the values of a span. now says whether it starts in the range.
func (c *changeSample) addSpan(s tracestore.Span, now bool) {
	c.spans++
	service := c.service(s.Resource.Service)
	seen := sighting{before: 1, last: s.Start}
	if now {
		seen = sighting{now: 1, first: s.Start, last: s.Start}
	}
	if v, ok := otlpdata.Get(s.Resource.Attributes, storequery.VersionKey); ok {
		c.sample(service.versions, v.AsString(), seen)
	}
	for _, key := range storequery.InstanceKeys() {
		if v, ok := otlpdata.Get(s.Resource.Attributes, key); ok {
			c.sample(service.instances, v.AsString(), seen)
			break
		}
	}
	for i := range s.Attributes {
		c.sample(service.keys, s.Attributes[i].Key, seen)
	}
}

func (c *changeSample) service(name string) *serviceSample {
	service := c.services[name]
	if service == nil {
		service = &serviceSample{versions: map[string]*sighting{}, instances: map[string]*sighting{}, keys: map[string]*sighting{},
			instanceKey: len(storequery.InstanceKeys())}
		c.services[strings.Clone(name)] = service
		c.bytes += serviceMemory + int64(len(name))
	}
	return service
}

// addTime records when spans of a service had an attribute. A value counts as seen at all times
// between its first and last span of an hour.
func (c *changeSample) addTime(a *storequery.AttributeTime) error {
	if a.Field.Place == tracestore.ResourceAttribute && a.Value == "" {
		return nil // the store does not know the value
	}
	first, last := time.Unix(0, int64(a.First)), time.Unix(0, int64(a.Last))
	overlaps := func(w core.Window) bool { return !last.Before(w.From) && !first.After(w.To) }
	seen := sighting{last: a.Last}
	if overlaps(c.periods.current()) {
		seen.now, seen.first = int(a.Spans), max(a.First, uint64(c.periods.start.UnixNano()))
	}
	if slices.ContainsFunc(c.periods.before, overlaps) {
		seen.before = int(a.Spans)
	}
	if seen.now+seen.before == 0 {
		return nil
	}
	for i, w := range c.periods.ends() {
		seen.atEnds[i] = overlaps(w)
	}
	service := c.service(a.Service)
	switch key := slices.Index(storequery.InstanceKeys(), a.Field.Key); {
	case a.Field.Place == tracestore.SpanAttribute:
		c.see(service.keys, a.Field.Key, seen)
	case a.Field.Key == storequery.VersionKey:
		c.see(service.versions, a.Value, seen)
	case key >= 0 && key <= service.instanceKey:
		if key < service.instanceKey {
			service.instanceKey = key
			clear(service.instances)
		}
		c.see(service.instances, a.Value, seen)
	}
	return c.memory.Resize(c.bytes)
}

// sample is like see, for at most maxSeen values.
func (c *changeSample) sample(seen map[string]*sighting, value string, spans sighting) {
	if seen[value] != nil || len(seen) < maxSeen {
		c.see(seen, value, spans)
	}
}

// see notes that spans have a value.
func (c *changeSample) see(seen map[string]*sighting, value string, spans sighting) {
	if len(value) > core.MaxListedText || value == otlpdata.FlagsAttribute {
		return
	}
	v := seen[value]
	if v == nil {
		v = &sighting{}
		seen[strings.Clone(value)] = v
		c.bytes += sightingMemory + int64(len(value))
	}
	if v.now == 0 || spans.now > 0 && spans.first < v.first {
		v.first = spans.first
	}
	v.before, v.now, v.last = v.before+spans.before, v.now+spans.now, max(v.last, spans.last)
	for i, seen := range spans.atEnds {
		v.atEnds[i] = v.atEnds[i] || seen
	}
}

// appeared returns the values that were seen only in the range, sorted.
func appeared(seen map[string]*sighting) (values []string) {
	for value, s := range seen {
		if s.before == 0 {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	return values
}

// gone returns the most recently seen value among the values that were not seen after a time, or
// "".
func gone(seen map[string]*sighting, after uint64) (latest string) {
	for value, s := range seen {
		if s.last <= after && (latest == "" || s.last > seen[latest].last || s.last == seen[latest].last && value < latest) {
			latest = value
		}
	}
	return latest
}

// instancesAt returns the number of instances of each service in one of changePeriods.ends.
func (c *changeSample) instancesAt(end int) map[string]int {
	counts := make(map[string]int)
	for name, s := range c.services {
		for _, seen := range s.instances {
			if seen.atEnds[end] {
				counts[name]++
			}
		}
	}
	return counts
}
