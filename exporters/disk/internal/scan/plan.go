package scan

import (
	"math"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Plan is a query bound to a source. Its parts are computed on first use. It is not safe for
// concurrent use.
type Plan struct {
	query       *Query
	Source      source.Source
	Tables      *rows.Tables
	programs    []*Program          // by shape
	never       Program             // the program of all shapes whose rows cannot match
	service     string              // of all spans that can match; "" if the query names none
	blockFilter *blockFilter        // nil: filters can exclude no condition of the query
	elements    bool                // filters know the elements of arrays
	facts       []facts             // by condition
	block       int                 // the current block
	blockSeq    int                 // number of blocks entered so far; results with another number are stale
	shapes      []source.BlockShape // scratch
	slab        slab[Program]
	leaves      slab[leaf]
	common      struct { // scratch: properties that the spans of a shape have in common
		resource otlpdata.Resource
		span     otlpdata.Span
	}
}

// slab allocates values in groups, because a source has thousands of shapes.
type slab[T any] struct{ free []T }

const slabSize = 32

func (s *slab[T]) add(v T) *T {
	if len(s.free) == 0 {
		s.free = make([]T, slabSize)
	}
	at := &s.free[0]
	*at, s.free = v, s.free[1:]
	return at
}

// facts holds what is known about a condition in the source.
type facts struct {
	resources resourceFacts
	words     map[uint32]*wordFacts // by column
	mayHold   bool                  // filters do not exclude the text in the block blockSeq
	blockSeq  int
}

type resourceFacts struct {
	all   verdict
	holds []bool // by resource; nil: not computed
}

type wordFacts struct {
	all  verdict // for the texts of rows whose shape has no constant
	memo []uint8 // by word: 0, or 1 + verdict
}

// Program decides which rows of one shape match.
type Program struct {
	root node
	// Of the block blockSeq:
	blockSeq int
	verdict  verdict
	Count    int     // of candidates; owned by the caller of Plan.Program
	Rows     []int32 // the candidates; owned by the caller as well
}

// RuledOut reports whether no row of the block matches.
func (p *Program) RuledOut() bool { return p.verdict == no }

// MatchesAll reports whether all rows of the block match.
func (p *Program) MatchesAll() bool { return p.verdict == yes }

// node is an expression without the parts that the shape decides.
type node struct {
	known verdict // depends, unless the shape decides everything
	kind  exprKind
	parts []node
	leaf  *leaf // of condExpr
	cost  int   // of one row, in arbitrary units
}

// leaf is a condition, with the cells of a shape that have its values.
type leaf struct {
	cond           *cond
	number         int // of the condition
	facts          *facts
	strings, other []position
	unfiltered     bool  // filters do not cover all of other
	resource       bool  // attributes of the resource are values, too
	encoded        bool  // fields that are encoded in cells are values, too
	blobs          []int // these cells, if an attribute is encoded, by index in Shape.Columns
	duration       bool
	parent         bool
}

// position is a cell of a row.
type position struct {
	index  int // index in Shape.Columns
	column uint32
	words  *wordFacts // for strings
}

// NewPlan returns a plan for a source with the vocabulary t.
func NewPlan(q *Query, src source.Source, t *rows.Tables) *Plan {
	p := &Plan{query: q, Source: src, Tables: t, programs: make([]*Program, len(t.Shapes)), facts: make([]facts, len(q.conds))}
	p.service = q.where.service(q.conds)
	p.elements = src.HoldsElements()
	p.blockFilter = newBlockFilter(p)
	return p
}

// PlanMemory returns the approximate size in bytes of a plan for a source with the vocabulary t.
// The vocabulary itself is shared by all queries and not included.
func PlanMemory(t *rows.Tables) int64 {
	const ofShape, ofResource = 128, 8
	return int64(len(t.Shapes))*ofShape + int64(len(t.Resources))*ofResource
}

// EnterBlock makes a block the current one and reports whether it may have a match. Filters come
// first, because their result is shared by many blocks.
func (p *Plan) EnterBlock(block int) bool {
	p.EnterBlockUnchecked(block)
	if p.blockFilter != nil && !p.blockFilter.mayMatch(p) {
		return false
	}
	shapes, known := p.Source.BlockShapes(p.shapes[:0], block)
	p.shapes = shapes
	possible := !known
	for _, s := range shapes {
		if pr := p.Program(s.Shape, s.Longest.End()); pr != nil && pr.verdict != no {
			possible = true
		}
	}
	return possible
}

// EnterBlockUnchecked makes a block the current one without checking whether it may have a match.
func (p *Plan) EnterBlockUnchecked(block int) {
	p.block = block
	p.blockSeq++
}

// EnterUnknownBlock prepares for rows of an unknown block.
func (p *Plan) EnterUnknownBlock() { p.EnterBlockUnchecked(unknownBlock) }

const unknownBlock = -1

// Program returns the program of a shape, evaluated for the current block, in which rows of the
// shape last at most longest nanoseconds. It is nil if the vocabulary does not have the shape.
func (p *Plan) Program(shape uint32, longest uint64) *Program {
	if int(shape) >= len(p.programs) {
		return nil
	}
	pr := p.programs[shape]
	if pr == &p.never {
		return pr
	}
	if pr = p.programOf(shape); pr != &p.never && pr.blockSeq != p.blockSeq {
		pr.blockSeq, pr.Count, pr.Rows = p.blockSeq, 0, nil
		pr.verdict = p.evaluate(&pr.root, longest)
	}
	return pr
}

// NeverMatches reports whether the rows of a shape are already known not to match. The shape must
// be in the vocabulary.
func (p *Plan) NeverMatches(shape uint32) bool { return p.programs[shape] == &p.never }

// MayMatch reports whether rows of a shape can match. It is false if the vocabulary does not have
// the shape.
func (p *Plan) MayMatch(shape uint32) bool {
	return int(shape) < len(p.programs) && p.programOf(shape) != &p.never
}

// programOf returns the program of a shape, and creates it on first use. The many shapes that
// cannot match share one.
func (p *Plan) programOf(shape uint32) *Program {
	pr := p.programs[shape]
	if pr != nil {
		return pr
	}
	pr = &p.never
	if p.service == "" || p.service == p.Tables.Shapes[shape].Service {
		if root := p.bind(shape); root.known != no {
			pr = p.slab.add(Program{root: root})
		}
	}
	p.programs[shape] = pr
	return pr
}

// evaluate evaluates an expression without looking at rows.
func (p *Plan) evaluate(n *node, longest uint64) verdict {
	if n.known != depends {
		return n.known
	}
	switch n.kind {
	case condExpr:
		return p.evaluateLeaf(n.leaf, longest)
	case notExpr:
		return negate(p.evaluate(&n.parts[0], longest))
	}
	decisive := no // the result of one part that decides the whole
	if n.kind == orExpr {
		decisive = yes
	}
	all := negate(decisive)
	for i := range n.parts {
		switch v := p.evaluate(&n.parts[i], longest); v {
		case decisive:
			return v
		case depends:
			all = depends
		}
	}
	return all
}

func negate(v verdict) verdict {
	switch v {
	case no:
		return yes
	case yes:
		return no
	}
	return depends
}

func (p *Plan) evaluateLeaf(l *leaf, longest uint64) verdict {
	if l.duration {
		return evaluateDuration(l.cond, longest)
	}
	if !l.cond.hasFilterText || l.resource || l.unfiltered || l.encoded && !p.filtersEncoded(l.cond) || p.mayHold(l.number) {
		return depends
	}
	return no
}

// filtersEncoded reports whether filters cover the values in encoded fields for which a condition
// can hold.
func (p *Plan) filtersEncoded(c *cond) bool { return c.onlyText && p.elements }

// mayHold reports whether the filter of the current block may hold the text of a condition.
func (p *Plan) mayHold(c int) bool {
	if p.block == unknownBlock {
		return true
	}
	f := &p.facts[c]
	if f.blockSeq != p.blockSeq {
		f.blockSeq = p.blockSeq
		f.mayHold = p.Source.MayHold(p.block, p.query.conds[c].Field.Key, p.query.conds[c].filterText)
	}
	return f.mayHold
}

// evaluateDuration evaluates a condition for durations from 1 to longest.
func evaluateDuration(c *cond, longest uint64) verdict {
	if !c.Value.IsNumber || c.Op == tracestore.Ne || c.Op >= tracestore.Like {
		return depends
	}
	if c.Op == tracestore.Eq {
		if n := c.Value.Number; n >= 1 && n <= float64(longest) {
			return depends
		}
		return no
	}
	short, long := c.Holds(otlpdata.DoubleValue(1)), c.Holds(otlpdata.DoubleValue(float64(longest)))
	if short != long {
		return depends
	}
	return verdictOf(short)
}

// resourceFacts evaluates a condition on the attributes of all resources of the tenant.
func (p *Plan) resourceFacts(c int) *resourceFacts {
	f := &p.facts[c].resources
	if f.holds != nil {
		return f
	}
	asked := p.query.conds[c].Cond
	asked.Field.Place = tracestore.ResourceAttribute
	holds := func(r *otlpdata.Resource) bool { return tracestore.Match(asked, tracestore.Span{Resource: r}) }
	if p.query.conds[c].Field.Place == tracestore.AnyText {
		holds = func(r *otlpdata.Resource) bool {
			return slices.ContainsFunc(r.Attributes, func(kv otlpdata.KeyValue) bool { return asked.Holds(kv.Value) })
		}
	}
	f.holds = make([]bool, len(p.Tables.Resources))
	some, all := false, true
	for i := range p.Tables.Resources {
		r := &p.Tables.Resources[i]
		if r.Tenant != p.query.tenant {
			continue
		}
		f.holds[i] = holds(&r.Resource)
		some, all = some || f.holds[i], all && f.holds[i]
	}
	f.all = depends
	if some == all {
		f.all = verdictOf(all)
	}
	return f
}

// maxEvaluatedWords is the maximum number of words of a column that are compared to find out
// whether none or all of them match.
const maxEvaluatedWords = 1 << 14

// wordFacts returns what is known about a condition on the texts of a column.
func (p *Plan) wordFacts(c int, column uint32) *wordFacts {
	f := &p.facts[c]
	if w := f.words[column]; w != nil {
		return w
	}
	w := &wordFacts{all: depends, memo: make([]uint8, len(p.Tables.Words[column]))}
	if words, complete := p.Source.Words(column); complete && len(words) <= maxEvaluatedWords {
		w.all = p.evaluateWords(&p.query.conds[c], column, words)
	}
	if f.words == nil {
		f.words = make(map[uint32]*wordFacts)
	}
	f.words[column] = w
	return w
}

func (p *Plan) evaluateWords(c *cond, column uint32, words []string) verdict {
	some, all := false, true
	for _, word := range words {
		holds := c.Holds(p.Value(column, rows.Cell{Data: word}))
		some, all = some || holds, all && holds
	}
	switch {
	case !some:
		return no
	case all:
		return yes
	}
	return depends
}

// Value returns the value of a cell as conditions see it. Empty span names have a substitute.
func (p *Plan) Value(column uint32, c rows.Cell) otlpdata.Value {
	if p.Tables.Columns[column].Place == rows.Name {
		s := otlpdata.Span{Name: p.Tables.Text(column, c)}
		return otlpdata.StringValue(s.Operation())
	}
	return p.Tables.Value(column, c)
}

// AnyDuration stands for an unknown longest duration.
const AnyDuration = math.MaxUint64
