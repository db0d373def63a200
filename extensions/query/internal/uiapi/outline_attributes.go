package uiapi

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/internal/translate/adjust"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Limits of the attributes of a trace.
const (
	maxTraceKeys  = 1000 // keys in one response
	maxTraceValue = 256  // bytes of a value; the rest is cut off
)

// Prefixes of the names of attributes.
const (
	ofSpan     = "span."
	ofResource = "resource."
)

// traceKeys serves GET /api/ui/v1/outline/{id}/keys: the attributes of a trace's spans and of their
// resources.
func (a *API) traceKeys(w http.ResponseWriter, r *http.Request) {
	a.answerPart(w, r, func(slot *core.Slot, ref tracestore.TraceRef, out *httpapi.Stream) (int, tracestore.Reasons, error) {
		k := keyCounter{memory: slot, counts: make(map[string]*keyCount)}
		incomplete, err := walkTrace(slot, ref, &k)
		if err != nil {
			return 0, nil, err
		}
		return 1, incomplete, out.Add(func(dst []byte) ([]byte, error) { return k.appendJSON(dst, out.Spill) })
	})
}

// traceValues serves GET /api/ui/v1/outline/{id}/values: the value of one attribute on each span
// that has it.
func (a *API) traceValues(w http.ResponseWriter, r *http.Request) {
	v, err := httpapi.Query(r)
	c := attributeColumn{index: make(map[string]int32)}
	if err == nil {
		err = c.parseKey(v)
	}
	if err != nil {
		httpapi.WriteError(w, http.StatusBadRequest, err.Error())
		return
	}
	a.answerPart(w, r, func(slot *core.Slot, ref tracestore.TraceRef, out *httpapi.Stream) (int, tracestore.Reasons, error) {
		c.memory = slot
		incomplete, err := walkTrace(slot, ref, &c)
		if err != nil {
			return 0, nil, err
		}
		return len(c.ids), incomplete, out.Add(func(dst []byte) ([]byte, error) { return c.appendJSON(dst, out.Spill) })
	})
}

// walkTrace visits the spans of a trace that an outline shows.
func walkTrace(slot *core.Slot, ref tracestore.TraceRef, v otlpdata.Visitor) (incomplete tracestore.Reasons, err error) {
	pieces, incomplete, err := slot.Trace(ref)
	if err == nil && len(pieces) == 0 {
		err = core.ErrTraceNotFound
	}
	if err != nil {
		return nil, err
	}
	return incomplete, adjust.Walk(adjust.Options{Raw: true, MaxSpans: slot.Limits().TraceSize}, v, pieces...)
}

// account is charged for memory.
type account interface {
	HoldMore(bytes int64) error
}

// keyCounter counts the spans that have each key.
type keyCounter struct {
	memory   account
	resource []otlpdata.KeyValue // attributes of the current resource
	spans    int
	counts   map[string]*keyCount
}

type keyCount struct {
	spans int
	last  int // number of the last span that was counted
}

// Resource implements otlpdata.Visitor.
func (k *keyCounter) Resource(r *otlpdata.Resource) error {
	k.resource = slices.Clone(r.Attributes)
	return nil
}

// Scope implements otlpdata.Visitor.
func (k *keyCounter) Scope(*otlpdata.Scope) error { return nil }

// Span implements otlpdata.Visitor.
func (k *keyCounter) Span(s *otlpdata.Span) error {
	k.spans++
	return cmp.Or(k.addKeys(ofResource, k.resource), k.addKeys(ofSpan, s.Attributes))
}

// addKeys counts each key of a list once.
func (k *keyCounter) addKeys(prefix string, kvs []otlpdata.KeyValue) error {
	for i := range kvs {
		if kvs[i].Key == adjust.WarningsKey {
			continue
		}
		name := prefix + kvs[i].Key
		c := k.counts[name]
		if c == nil {
			if err := k.memory.HoldMore(int64(len(name)) + dictionaryEntry); err != nil {
				return err
			}
			c = &keyCount{}
			k.counts[name] = c
		}
		if c.last != k.spans {
			c.spans, c.last = c.spans+1, k.spans
		}
	}
	return nil
}

// dictionaryEntry is the approximate memory in bytes of an entry of a map with texts as keys.
const dictionaryEntry = 64

// appendJSON appends the keys, the most frequent ones first, as columns.
func (k *keyCounter) appendJSON(dst []byte, spill spill) (_ []byte, err error) {
	names := make([]string, 0, len(k.counts))
	for name := range k.counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(k.counts[b].spans-k.counts[a].spans, strings.Compare(a, b)) })
	more := len(names) > maxTraceKeys
	names = names[:min(len(names), maxTraceKeys)]
	if dst, err = appendDictionary(append(dst, `{"key":`...), names, spill); err != nil {
		return dst, err
	}
	count := func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(k.counts[names[i]].spans), 10) }
	if dst, err = appendList(append(dst, `,"spans":[`...), len(names), count, spill); err != nil {
		return dst, err
	}
	return append(strconv.AppendBool(append(dst, `],"more":`...), more), '}'), nil
}

// attributeColumn collects the values of one attribute.
type attributeColumn struct {
	memory   account
	key      string
	resource bool // whether it is a resource attribute

	current string // value of the current resource
	present bool

	words []string
	index map[string]int32
	ids   []otlpdata.SpanID
	value []int32 // in words, for each of ids
}

// parseKey reads the parameter `key`: span.KEY or resource.KEY.
func (c *attributeColumn) parseKey(v url.Values) error {
	name := v.Get("key")
	var ok bool
	if c.key, ok = strings.CutPrefix(name, ofSpan); !ok {
		c.key, c.resource = strings.CutPrefix(name, ofResource)
	}
	if c.key == "" || (!ok && !c.resource) {
		return httpapi.ParamError("key", errors.New("write span.KEY or resource.KEY"))
	}
	return nil
}

// Resource implements otlpdata.Visitor.
func (c *attributeColumn) Resource(r *otlpdata.Resource) error {
	if c.resource {
		c.current, c.present = valueOf(r.Attributes, c.key)
	}
	return nil
}

// Scope implements otlpdata.Visitor.
func (c *attributeColumn) Scope(*otlpdata.Scope) error { return nil }

// Span implements otlpdata.Visitor.
func (c *attributeColumn) Span(s *otlpdata.Span) error {
	if !c.resource {
		c.current, c.present = valueOf(s.Attributes, c.key)
	}
	if !c.present {
		return nil
	}
	at, known := c.index[c.current]
	held := int64(len(s.SpanID)) + 4
	if !known {
		at = int32(len(c.words))
		word := strings.Clone(c.current)
		c.words, c.index[word] = append(c.words, word), at
		held += int64(len(word)) + dictionaryEntry
	}
	c.ids, c.value = append(c.ids, s.SpanID), append(c.value, at)
	return c.memory.HoldMore(held)
}

// valueOf returns the first value of a key, cut to its maximum length.
func valueOf(kvs []otlpdata.KeyValue, key string) (string, bool) {
	v, found := otlpdata.Get(kvs, key)
	if !found {
		return "", false
	}
	text := v.AsString()
	if len(text) <= maxTraceValue {
		return text, true
	}
	cut := maxTraceValue
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…", true
}

// appendJSON appends the values, and the spans with their values, as columns.
func (c *attributeColumn) appendJSON(dst []byte, spill spill) (_ []byte, err error) {
	if dst, err = appendDictionary(append(dst, `{"values":`...), c.words, spill); err != nil {
		return dst, err
	}
	if dst, err = appendIDs(append(dst, `,"ids":"`...), len(c.ids), func(i int) otlpdata.SpanID { return c.ids[i] }, spill); err != nil {
		return dst, err
	}
	number := func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(c.value[i]), 10) }
	if dst, err = appendList(append(dst, `","value":[`...), len(c.value), number, spill); err != nil {
		return dst, err
	}
	return append(dst, "]}"...), nil
}
