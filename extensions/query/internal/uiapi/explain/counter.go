package explain

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Limits of a counter.
const (
	// maxKeys is the maximum number of attribute keys that are counted. Further keys are ignored.
	maxKeys = 1000
	// maxDistinct is the maximum number of values of a key that are counted at the same time, and
	// maxValues the maximum for all keys. If there are more, the rarest are forgotten.
	maxDistinct, maxValues = 1000, 100_000
	// Keys with at most fewDistinct values forget none.
	fewDistinct = 64
	// maxResources is the maximum number of resources whose values are remembered.
	maxResources = 10_000
)

// Approximate sizes in bytes of the parts of a counter.
const (
	keyMemory   = 256
	valueMemory = 160
	indexMemory = 8 // an index of a trace, in a list that grows by doubling
)

// counter counts which traces have which attributes. Callers call beginTrace for each trace, span
// for each of its spans, and endTrace at the end. It is not safe for concurrent use.
type counter struct {
	account     *tracestore.Memory        // nil: no limit
	chosenBy    map[tracestore.Field]bool // fields of the condition that selects traces, which are not ranked
	memory      int                       // in use
	charged     int                       // of memory
	traces      []countedTrace
	keys        map[keyID]*key
	language    traceql.Language // knows which keys are names of one attribute
	renamed     map[keyID]*key   // keys with several names, by further names and by joined names
	values      int              // of all keys
	omitted     bool
	generation  int    // number of times that values were forgotten
	text        []byte // scratch
	resources   map[string]resourceValues
	raw         []byte // resource of the previous span
	resource    resourceValues
	first, last uint64 // start and end of the current trace
	calls       callIndex
}

// countedTrace is a counted trace.
type countedTrace struct {
	duration uint64 // nanoseconds from the first start to the last end
	selected bool
	root     int32 // operation of its root span
}

// keyID identifies a key. Resource attributes are counted per service, because all services have
// the same keys. service is "" for span attributes. The place Service without a key counts the
// traces of a service.
type keyID struct {
	place   tracestore.Place
	key     string
	service string
}

// key counts the values of a key.
type key struct {
	keyID
	names   string   // of an attribute that was renamed: see tracestore.Field.Names
	traces  []uint32 // indexes of counter.traces, ascending
	values  map[string]*value
	numbers []float64 // for each of traces, the highest number
	times   []uint8   // for each of traces, the number of spans with the key, at most 255
	text    bool      // not all values are numbers
	owner   string    // a service that has the key
	several bool      // more than one service has it
	calls   []int32   // indexes of calls that have it, ascending; not for resource attributes
	spans   int       // number of spans of these calls that have it
	failed  int       // of these spans
}

// value counts one value.
type value struct {
	key    *key
	text   string
	number float64
	traces []uint32 // as of key
	calls  []int32  // as of key
}

// resourceValues are the values of a resource. They are valid for one generation.
type resourceValues struct {
	values     []*value
	generation int
}

// newCounter returns a counter for a selection. It reserves its memory in m, which the caller
// releases.
func newCounter(m *tracestore.Memory, selection tracestore.Expr) *counter {
	c := &counter{account: m, keys: make(map[keyID]*key), renamed: make(map[keyID]*key), resources: make(map[string]resourceValues),
		calls: newCallIndex()}
	c.chosenBy = make(map[tracestore.Field]bool)
	for f := range tracestore.Fields(selection) {
		places := []tracestore.Place{f.Place}
		if f.Place == tracestore.AnyAttribute {
			places = []tracestore.Place{tracestore.SpanAttribute, tracestore.ResourceAttribute}
		}
		for _, place := range places {
			for name := range f.EachName() {
				c.chosenBy[tracestore.Field{Place: place, Key: name.Key}] = true
			}
		}
	}
	return c
}

// beginTrace ends the previous trace and begins another one. If it returns an error, as
// tracestore.Reserve does, the trace is not counted.
func (c *counter) beginTrace(selected bool) error {
	c.endTrace()
	if err := c.charge(); err != nil {
		return err
	}
	c.traces = append(c.traces, countedTrace{selected: selected})
	c.first, c.last = math.MaxUint64, 0
	return nil
}

// charge charges the account for the memory in use.
func (c *counter) charge() error {
	c.charged = c.memory
	return c.account.Resize(int64(c.memory))
}

// maxUncharged is the memory in bytes that may be in use before the account is charged.
const maxUncharged = 1 << 20

// chargeLarge charges the account within a trace that takes much memory.
func (c *counter) chargeLarge() error {
	if c.memory-c.charged < maxUncharged {
		return nil
	}
	return c.charge()
}

// span counts the attributes of a span of the trace.
func (c *counter) span(s tracestore.Span) {
	duration, _ := s.Duration()
	c.first, c.last = min(c.first, s.Start), max(c.last, s.Start+duration)
	c.traces[len(c.traces)-1].duration = c.last - c.first
	if c.raw == nil || c.resource.generation != c.generation || !bytes.Equal(c.raw, s.Resource.Raw) {
		c.setResource(s.Resource)
	}
	for _, v := range c.resource.values {
		c.count(v)
	}
	c.addSpan(s)
	o := &c.calls
	for i := range s.Attributes {
		kv := &s.Attributes[i]
		v := c.value(keyID{tracestore.SpanAttribute, kv.Key, ""}, s.Resource.Service, kv.Value)
		if v != nil && !v.key.hasNewer(kv.Key, s.Attributes) {
			if len(o.occurrences) == cap(o.occurrences) {
				c.memory += (len(o.occurrences) + 1) * 2 * indexMemory // it doubles
			}
			o.occurrences = append(o.occurrences, occurrence{v, int32(len(o.spans) - 1)})
		}
	}
}

// setResource sets the values of the resource of the next spans.
func (c *counter) setResource(r *otlpdata.Resource) {
	c.raw = r.Raw
	known, ok := c.resources[string(r.Raw)]
	if ok && known.generation == c.generation {
		c.resource = known
		return
	}
	values := make([]*value, 0, len(r.Attributes)+1)
	if v := c.value(keyID{tracestore.Service, "", r.Service}, r.Service, otlpdata.StringValue("")); v != nil {
		values = append(values, v)
	}
	for i := range r.Attributes {
		kv := &r.Attributes[i]
		if kv.Key == serviceKey {
			continue // keys are counted per service
		}
		v := c.value(keyID{tracestore.ResourceAttribute, kv.Key, r.Service}, r.Service, kv.Value)
		if v != nil && !v.key.hasNewer(kv.Key, r.Attributes) {
			values = append(values, v)
		}
	}
	c.resource = resourceValues{values, c.generation}
	if ok || len(c.resources) < maxResources {
		c.resources[string(r.Raw)] = c.resource
		c.memory += len(r.Raw) + len(values)*indexMemory + keyMemory
	}
}

// hasNewer reports whether a span or resource with a name of the key also has a newer one.
func (k *key) hasNewer(name string, attributes []otlpdata.KeyValue) bool {
	if k.names == "" {
		return false
	}
	for newer := range (tracestore.Field{Names: k.names}).EachName() {
		if newer.Key == name {
			return false
		}
		if slices.ContainsFunc(attributes, func(kv otlpdata.KeyValue) bool { return kv.Key == newer.Key }) {
			return true
		}
	}
	return false
}

// serviceKey is the attribute that names the service.
const serviceKey = "service.name"

// value returns the counter of a value, or nil if it is not counted.
func (c *counter) value(id keyID, service string, v otlpdata.Value) *value {
	k := c.keys[id]
	if k == nil {
		k = c.renamed[id]
	}
	if k == nil {
		if k = c.newKey(id, service); k == nil {
			return nil
		}
	}
	k.several = k.several || k.owner != service
	if v.Kind() == otlpdata.ValueString {
		c.text = append(c.text[:0], storequery.FacetText(v.Str())...)
	} else if c.text = v.AppendText(c.text[:0]); len(c.text) > storequery.MaxFacetText {
		c.text = []byte(storequery.FacetText(string(c.text)))
	}
	if known := k.values[string(c.text)]; known != nil {
		return known
	}
	if n := len(k.values); n >= maxDistinct || c.values >= maxValues && n >= fewDistinct {
		c.forget(k)
	}
	number, ok := numberOf(v)
	k.text = k.text || !ok
	out := &value{key: k, text: string(c.text), number: number}
	k.values[out.text] = out
	c.values++
	c.memory += valueMemory + len(out.text)
	return out
}

func (c *counter) newKey(id keyID, service string) *key {
	if id.key == otlpdata.FlagsAttribute {
		return nil
	}
	attribute := c.language.Attribute(id.place, id.key)
	k := c.renamed[keyID{id.place, attribute.Names, id.service}]
	if k == nil && len(c.keys) >= maxKeys {
		c.omitted = true
		return nil
	}
	id.service, id.key = strings.Clone(id.service), strings.Clone(id.key) // the span must not be retained
	c.memory += keyMemory + len(id.key) + len(id.service)
	if k != nil {
		if attribute.IsNewer(k.key) {
			k.key = id.key
		}
		c.renamed[id] = k
		return k
	}
	k = &key{keyID: id, values: make(map[string]*value), owner: strings.Clone(service), names: attribute.Names}
	c.memory += len(service)
	c.keys[id] = k
	if k.names != "" {
		c.renamed[keyID{id.place, k.names, id.service}] = k
		c.memory += keyMemory
	}
	return k
}

// numberOf returns the number of a value.
func numberOf(v otlpdata.Value) (float64, bool) {
	switch v.Kind() {
	case otlpdata.ValueInt:
		return float64(v.Int()), true
	case otlpdata.ValueDouble:
		f := v.Double()
		return f, !math.IsNaN(f) && !math.IsInf(f, 0)
	}
	return 0, false
}

// forget forgets the rarest values of a key, so that frequent ones can be counted regardless of the
// number of values.
func (c *counter) forget(k *key) {
	c.generation++
	keep := len(k.values) * 3 / 4
	for most := 1; len(k.values) > keep; most *= 2 {
		for text, v := range k.values {
			if len(v.traces) <= most {
				delete(k.values, text)
				c.values--
				c.memory -= valueMemory + len(text) + len(v.traces)*indexMemory
			}
		}
	}
}

// count counts a value for the current trace.
func (c *counter) count(v *value) {
	t := uint32(len(c.traces) - 1)
	if n := len(v.traces); n == 0 || v.traces[n-1] != t {
		v.traces = append(v.traces, t)
		c.memory += indexMemory
	}
	k := v.key
	if n := len(k.traces); n > 0 && k.traces[n-1] == t {
		k.numbers[n-1] = max(k.numbers[n-1], v.number)
		k.times[n-1] = max(k.times[n-1], k.times[n-1]+1) // it stays at 255
		return
	}
	k.traces, k.numbers, k.times = append(k.traces, t), append(k.numbers, v.number), append(k.times, 1)
	c.memory += 3 * indexMemory
}

// sortedKeys returns the keys by place, key and service.
func (c *counter) sortedKeys() []*key {
	out := make([]*key, 0, len(c.keys))
	for _, k := range c.keys {
		if len(k.traces) > 0 && k.place != tracestore.Service {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b *key) int {
		return cmp.Or(cmp.Compare(a.place, b.place), strings.Compare(a.key, b.key), strings.Compare(a.service, b.service))
	})
	return out
}

// split returns how many of some traces are selected, and how many are not.
func (c *counter) split(traces []uint32) (p pair) {
	for _, t := range traces {
		p.add(c.traces[t].selected)
	}
	return p
}

// pair holds a number of selected traces and a number of other traces.
type pair struct{ selected, rest int }
