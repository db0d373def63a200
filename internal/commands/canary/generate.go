package canary

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

const (
	// longest is the maximum duration of a trace. Like traces of applications, it ends before it is
	// written.
	longest = 2 * time.Second
	// shortest is the minimum duration, so that nested spans can have different durations.
	shortest = 10 * time.Millisecond
	// maxMoreSpans is the maximum number of random spans that a trace has in addition to the fixed
	// ones in steps.
	maxMoreSpans = 12
	// maxEvents and maxLinks are the maximum numbers per span.
	maxEvents, maxLinks = 3, 2
	// shortIDs: one in shortIDs traces has an id of 64 bits.
	shortIDs = 8
)

// generate returns the trace for a seed and a time. Other versions of the program expect the same
// result.
func generate(seed uint64, at time.Time) *trace {
	g := &generator{rand.New(rand.NewPCG(seed, uint64(at.UnixNano())))}
	t := &trace{id: g.traceID()}
	if g.IntN(shortIDs) == 0 {
		clear(t.id[:8])
	}
	for i := range steps {
		g.addStep(t, steps[i], at)
	}
	for range g.IntN(maxMoreSpans + 1) {
		parent := g.IntN(len(t.spans))
		g.addStep(t, step{service: g.IntN(len(services)), parent: parent, kind: otlpdata.KindInternal, name: "step"}, at)
	}
	g.finishRoot(t)
	return t
}

type generator struct{ *rand.Rand }

// addStep adds a span that lies within its parent.
func (g *generator) addStep(t *trace, of step, at time.Time) {
	s := span{service: &services[of.service], id: g.spanID(), name: of.name, kind: of.kind, flags: uint32(g.IntN(2))}
	if of.parent < 0 {
		s.start = uint64(at.Add(-longest).UnixNano()) + g.Uint64N(1000) // nanoseconds, like real clocks
		s.end = s.start + g.within(uint64(shortest), uint64(longest-time.Microsecond))
	} else {
		p := &t.spans[of.parent]
		s.parent = p.id
		s.start = p.start + g.Uint64N((p.end-p.start)/4+1)
		s.end = s.start + g.Uint64N(p.end-s.start+1)
	}
	if g.IntN(3) == 0 {
		s.state = fmt.Sprintf("canary=%d", g.IntN(100))
	}
	g.setStatus(&s)
	s.attributes = append(g.some(), text("canary.trace", t.id.String()), integer("canary.span", int64(len(t.spans))))
	for range g.IntN(maxEvents + 1) {
		e := event{at: g.within(s.start, s.end), name: pick(g, eventNames), attributes: g.some()}
		s.events = append(s.events, e)
	}
	for range g.IntN(maxLinks + 1) {
		s.links = append(s.links, link{g.traceID(), g.spanID()})
	}
	t.spans = append(t.spans, s)
}

var eventNames = []string{"retry", "exception", "Nachricht gelöscht ✂"}

func (g *generator) setStatus(s *span) {
	switch g.IntN(4) {
	case 0:
		s.status = otlpdata.StatusOK
	case 1:
		s.status, s.message = otlpdata.StatusError, "timeout: 30 s < 1 min ⏱"
	}
}

// finishRoot adds an attribute to the root that searches use. Its text is the same in all versions
// of the API.
func (g *generator) finishRoot(t *trace) {
	const key = "canary.lookup"
	switch g.IntN(4) {
	case 0:
		t.lookup = text(key, `ümläut "x" & y`)
	case 1:
		t.lookup = integer(key, g.Int64())
	case 2:
		t.lookup = boolean(key, g.IntN(2) == 0)
	case 3:
		t.lookup = double(key, float64(g.IntN(1000))+0.5)
	}
	t.spans[0].attributes = append(t.spans[0].attributes, t.lookup)
}

// some returns attributes of some or all types.
func (g *generator) some() []attribute {
	all := []attribute{
		text("canary.text", pick(g, textValues)), boolean("canary.bool", g.IntN(2) == 0), integer("canary.int", pick(g, intValues)),
		double("canary.double", pick(g, floats)), binaryAttribute("canary.bytes", pick(g, binaries)), list("canary.list", pick(g, lists)),
		text("schlüssel 🔑", pick(g, textValues)),
	}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:g.IntN(len(all)+1)]
}

func pick[T any](g *generator, from []T) T { return from[g.IntN(len(from))] }

// within returns a number from low to high, inclusive.
func (g *generator) within(low, high uint64) uint64 { return low + g.Uint64N(high-low+1) }

func (g *generator) traceID() (id otlpdata.TraceID) {
	binary.BigEndian.PutUint64(id[:8], g.Uint64()|1)
	binary.BigEndian.PutUint64(id[8:], g.Uint64()|1)
	return id
}

func (g *generator) spanID() (id otlpdata.SpanID) {
	binary.BigEndian.PutUint64(id[:], g.Uint64()|1)
	return id
}
