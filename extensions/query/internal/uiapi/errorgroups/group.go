package errorgroups

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

const (
	points    = 30 // parts of the time range
	maxListed = 10 // operations, and versions, of a group that are counted
	// maxStacks is the number of stack traces whose frames are kept, because most stack traces
	// repeat.
	maxStacks = 1000
	// groupMemory is the approximate maximum memory of a group in bytes.
	groupMemory = (8+2*maxListed)*storequery.MaxFacetText + 8*points + 1024
	// stackMemory is the approximate memory of a kept frame in bytes.
	stackMemory = 1024
)

// groupKey identifies a group.
type groupKey struct {
	service, kind, pattern, frame string
	message                       tracestore.Place // of the message
	// operation is set only if there is neither a message nor a frame.
	operation string
}

// group counts failed spans.
type group struct {
	key         groupKey
	failure     failure // of the first span, without its stack trace
	pattern     pattern
	frame       frame
	stackless   bool // no span has a stack trace
	count       int
	first, last uint64
	points      []int
	operations  counted
	versions    counted
	message     string // of the newest span, as are the ids
	traceID     otlpdata.TraceID
	spanID      otlpdata.SpanID
	before      int
	answer      *groupAnswer // nil if it is not returned
}

// groups holds all groups of a window.
type groups struct {
	from, to uint64
	memory   *tracestore.Memory
	byKey    map[groupKey]*group
	stacks   map[string]frame
}

func newGroups(w core.Window, memory *tracestore.Memory) *groups {
	g := &groups{memory: memory, byKey: make(map[groupKey]*group), stacks: make(map[string]frame)}
	g.from, g.to, _ = tracestore.Query{From: w.From, To: w.To}.Window()
	return g
}

// describe returns what failed in a span, and its group.
func (g *groups) describe(s tracestore.Span) (f failure, p pattern, top frame, key groupKey, err error) {
	f = failureOf(s.Span)
	p = patternOf(f.message)
	if top, err = g.frame(f.stack); err != nil {
		return f, p, top, key, err
	}
	key = groupKey{service: s.Resource.Service, kind: storequery.FacetText(f.kind), pattern: p.String(),
		frame: storequery.FacetText(top.String()), message: f.messageField.Place}
	if key.pattern == "" && key.frame == "" {
		key.operation = storequery.FacetText(s.Operation())
	}
	return f, p, top, key, nil
}

// frame returns the top frame of a stack trace.
func (g *groups) frame(stack string) (frame, error) {
	if stack == "" {
		return frame{}, nil
	}
	if f, known := g.stacks[stack]; known {
		return f, nil
	}
	f := topFrame(stack)
	f.function, f.file, f.like = strings.Clone(f.function), strings.Clone(f.file), strings.Clone(f.like)
	if len(g.stacks) >= maxStacks || len(stack) > maxStack {
		return f, nil
	}
	g.stacks[strings.Clone(stack)] = f
	return f, g.memory.Grow(stackMemory + int64(len(stack)))
}

// addSpan counts a failed span of the window.
func (g *groups) addSpan(s tracestore.Span) error {
	f, p, top, key, err := g.describe(s)
	if err != nil {
		return err
	}
	one := g.byKey[key]
	if one == nil {
		if one, err = g.newGroup(f, p, top, key); err != nil {
			return err
		}
		one.first = s.Start
	}
	one.count++
	one.first = min(one.first, s.Start)
	one.points[g.part(s.Start)]++
	one.stackless = one.stackless && f.stack == ""
	one.operations.addText(s.Operation())
	if v, ok := otlpdata.Get(s.Resource.Attributes, "service.version"); ok {
		one.versions.addText(v.AsString())
	}
	if one.message == "" && one.count == 1 || s.Start > one.last {
		one.last, one.message = s.Start, strings.Clone(storequery.FacetText(f.message))
		one.traceID, one.spanID = s.TraceID, s.SpanID
	}
	return nil
}

func (g *groups) newGroup(f failure, p pattern, top frame, key groupKey) (*group, error) {
	if err := g.memory.Grow(groupMemory); err != nil {
		return nil, err
	}
	key.service, key.kind = strings.Clone(key.service), strings.Clone(key.kind)
	key.pattern, key.frame, key.operation = strings.Clone(key.pattern), strings.Clone(key.frame), strings.Clone(key.operation)
	f.kind, f.kindValue, f.message, f.stack = key.kind, strings.Clone(storequery.FacetText(f.kindValue)), "", ""
	for i := range p.parts {
		p.parts[i].text = strings.Clone(p.parts[i].text)
	}
	one := &group{key: key, failure: f, pattern: p, frame: top, stackless: true, points: make([]int, points)}
	g.byKey[key] = one
	return one, nil
}

// addBefore counts a failed span of the time before the window.
func (g *groups) addBefore(s tracestore.Span) error {
	_, _, _, key, err := g.describe(s)
	if one := g.byKey[key]; one != nil {
		one.before++
	}
	return err
}

// part returns the part of the time range to which a start belongs.
func (g *groups) part(start uint64) int {
	length := (g.to-g.from)/points + 1
	return int((start - g.from) / length)
}

// sorted returns the groups with the most spans first.
func (g *groups) sorted() []*group {
	out := make([]*group, 0, len(g.byKey))
	for _, one := range g.byKey {
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(b.last, a.last), strings.Compare(a.key.service, b.key.service),
			strings.Compare(a.key.kind, b.key.kind), strings.Compare(a.key.pattern, b.key.pattern), strings.Compare(a.key.frame, b.key.frame),
			cmp.Compare(a.key.message, b.key.message), strings.Compare(a.key.operation, b.key.operation))
	})
	return out
}

// counted counts texts, the first maxListed ones.
type counted struct {
	list  []countedText
	other int // occurrences of further texts
}

// countedText is a text and how often it occurs.
type countedText struct {
	Text  string `json:"text"`
	Count int    `json:"count"`
}

func (c *counted) addText(text string) {
	text = storequery.FacetText(text)
	i := slices.IndexFunc(c.list, func(t countedText) bool { return t.Text == text })
	switch {
	case i >= 0:
		c.list[i].Count++
	case len(c.list) < maxListed:
		c.list = append(c.list, countedText{strings.Clone(text), 1})
	default:
		c.other++
	}
}

// sorted returns the texts with the highest counts first. It is not nil.
func (c *counted) sorted() []countedText {
	out := append([]countedText{}, c.list...)
	slices.SortFunc(out, func(a, b countedText) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Text, b.Text))
	})
	return out
}

// answer is the data of GET /api/ui/v1/errors.
type answer struct {
	period
	Before  *period        `json:"before,omitempty"` // the time before
	Omitted int            `json:"omitted"`          // groups that are left out because of the limit
	Groups  []*groupAnswer `json:"groups"`           // those with the most spans first
}

type groupAnswer struct {
	Service         string        `json:"service"`
	Operation       string        `json:"operation"` // the most frequent one; the only one without Pattern and Frame
	Operations      []countedText `json:"operations"`
	OtherOperations int           `json:"otherOperations"` // spans of further operations
	Versions        []countedText `json:"versions"`        // values of service.version
	Type            string        `json:"type"`            // see failure.kind
	Pattern         string        `json:"pattern"`         // the message without its variable parts
	Frame           string        `json:"frame"`           // the top frame, or ""
	Where           string        `json:"where"`           // conditions, as within braces
	Message         string        `json:"message"`
	Count           int           `json:"count"`
	Before          *int          `json:"before,omitempty"` // spans in the time before
	First           route.Nanos   `json:"first"`
	Last            route.Nanos   `json:"last"`
	Points          []int         `json:"points"`
	TraceID         string        `json:"traceID"` // of the newest span, as are Message and SpanID
	SpanID          string        `json:"spanID"`
}

// answer returns the groups with the most spans.
func (g *groups) answer(limit int) *answer {
	all := g.sorted()
	out := &answer{Omitted: max(len(all)-limit, 0), Groups: []*groupAnswer{}}
	similar := make(map[groupKey]int)
	for _, one := range all {
		similar[one.key.withoutFrame()]++
	}
	for _, one := range all[:len(all)-out.Omitted] {
		operations := one.operations.sorted()
		one.answer = &groupAnswer{Service: one.key.service, Operation: operations[0].Text, Operations: operations,
			OtherOperations: one.operations.other, Versions: one.versions.sorted(), Type: one.key.kind, Pattern: one.key.pattern,
			Frame: one.key.frame, Where: one.where(similar[one.key.withoutFrame()] > 1), Message: one.message, Count: one.count,
			First: route.Nanos(one.first), Last: route.Nanos(one.last), Points: one.points,
			TraceID: hex.EncodeToString(one.traceID[:]), SpanID: hex.EncodeToString(one.spanID[:])}
		out.Groups = append(out.Groups, one.answer)
	}
	return out
}

func (k groupKey) withoutFrame() groupKey {
	k.frame = ""
	return k
}

// countBefore adds the counts of the time before to the answer.
func (g *groups) countBefore() {
	for _, one := range g.byKey {
		if one.answer != nil {
			one.answer.Before = &one.before
		}
	}
}
