package uiapi

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	changeSlices = 12 // number of parts of the range, and of the times before
	changeTraces = 25 // traces of each part
	// maxChangeSpans is the maximum number of spans of the sample.
	maxChangeSpans = 50_000
	// maxSeen is the maximum number of recorded versions, instances and keys of a service.
	maxSeen = 500
	// Approximate memory in bytes, without texts.
	sightingMemory, serviceMemory = 128, 512
)

// instanceKeys are the resource attributes that identify instances of a service. The first one that
// a resource has is used.
func instanceKeys() []string { return []string{"service.instance.id", "k8s.pod.name", "host.name"} }

// versionKey is the resource attribute with the version of a service.
const versionKey = "service.version"

// changeSample holds the values in the newest traces from parts of the range and of the times
// before.
type changeSample struct {
	periods  *changePeriods
	spans    int
	memory   *tracestore.Memory
	bytes    int64 // approximate memory of services
	services map[string]*serviceSample
	windows  map[otlpdata.TraceID][]core.Window // of the parts that have a trace
}

type serviceSample struct{ versions, instances, keys map[string]*sighting }

// sighting says where a value was seen. Times are nanoseconds since the Unix epoch.
type sighting struct {
	before, now int    // spans in the times before, and in the range
	first       uint64 // start of the first span in the range
	last        uint64 // start of the last span
}

var errSampled = errors.New("sample is large enough")

// read reads the sample.
func (c *changeSample) read(slot *core.Slot, p *changePeriods) error {
	c.periods, c.services, c.windows = p, make(map[string]*serviceSample), make(map[otlpdata.TraceID][]core.Window)
	var err error
	if c.memory, err = tracestore.Reserve(slot.Context(), 0); err != nil {
		return err
	}
	var lists [][]otlpdata.TraceID // of each part
	for _, times := range [][]core.Window{p.before, {p.current()}} {
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
	service := c.services[s.Resource.Service]
	if service == nil {
		service = &serviceSample{versions: map[string]*sighting{}, instances: map[string]*sighting{}, keys: map[string]*sighting{}}
		c.services[strings.Clone(s.Resource.Service)] = service
		c.bytes += serviceMemory + int64(len(s.Resource.Service))
	}
	if v, ok := otlpdata.Get(s.Resource.Attributes, versionKey); ok {
		c.see(service.versions, v.AsString(), now, s.Start)
	}
	for _, key := range instanceKeys() {
		if v, ok := otlpdata.Get(s.Resource.Attributes, key); ok {
			c.see(service.instances, v.AsString(), now, s.Start)
			break
		}
	}
	for i := range s.Attributes {
		c.see(service.keys, s.Attributes[i].Key, now, s.Start)
	}
}

// see notes a value.
func (c *changeSample) see(seen map[string]*sighting, value string, now bool, start uint64) {
	if len(value) > core.MaxListedText || value == otlpdata.FlagsAttribute {
		return
	}
	v := seen[value]
	if v == nil {
		if len(seen) >= maxSeen {
			return
		}
		v = &sighting{}
		seen[strings.Clone(value)] = v
		c.bytes += sightingMemory + int64(len(value))
	}
	v.last = max(v.last, start)
	if !now {
		v.before++
		return
	}
	if v.now == 0 || start < v.first {
		v.first = start
	}
	v.now++
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
