package scan

import (
	"math"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// plan is a query bound to a source. Everything in it is made when it is first needed.
type Plan struct {
	query       *Query
	Source      source.Source
	Tables      *rows.Tables
	programs    []*Program          // by shape
	never       Program             // of all shapes whose rows cannot match, whatever the block
	service     string              // of all spans that can match; "" where the query names none
	blockFilter *blockFilter        // nil: no condition can be denied by filters
	facts       []facts             // by condition
	block       int                 // that is judged or examined at the moment
	blockSeq    int                 // counts blocks, so that what was said about an earlier one is known to be old
	shapes      []source.BlockShape // scratch
	slab        slab[Program]
	leaves      slab[leaf]
	common      struct { // scratch: what spans of a shape have in common
		resource otlpdata.Resource
		span     otlpdata.Span
	}
}

// slab allocates values in groups: a source has thousands of shapes.
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

// facts are what is known of a condition in the source.
type facts struct {
	resources resourceFacts
	words     map[uint32]*wordFacts // by column
	mayHold   bool                  // a row of the block may have the text
	blockSeq  int                   // that held is of
}

type resourceFacts struct {
	all   verdict
	holds []bool // by resource; nil until asked for
}

type wordFacts struct {
	all  verdict // of the texts that rows have where they are not constant
	memo []uint8 // by word: 0, or 1 + verdict
}

// program decides about the rows of one shape.
type Program struct {
	root node
	// Of the block of a turn:
	blockSeq int
	verdict  verdict
	Count    int     // of candidates
	Rows     []int32 // the candidates
}

// ruledOut reports whether no row of the block can match.
func (p *Program) RuledOut() bool { return p.verdict == no }

// matchesAll reports whether all rows of the block match.
func (p *Program) MatchesAll() bool { return p.verdict == yes }

// node is an expression of which the parts that a shape decides are gone.
type node struct {
	known verdict // depends, unless the shape decided everything
	kind  exprKind
	parts []node
	leaf  *leaf // of oneCond
	cost  int   // of a row, in arbitrary units
}

// leaf is a condition and where its values stand in the rows of a shape.
type leaf struct {
	cond           *cond
	number         int // of the condition
	facts          *facts
	strings, other []position
	unfiltered     bool // filters do not have all of other
	resource       bool // attributes of the resource count
	encoded        bool // so does what is encoded in cells
	duration       bool
	parent         bool
}

// position is a cell of a row.
type position struct {
	index  int // in Shape.Columns
	column uint32
	words  *wordFacts // of strings
}

// NewPlan returns a plan for a source with tables t.
func NewPlan(q *Query, src source.Source, t *rows.Tables) *Plan {
	p := &Plan{query: q, Source: src, Tables: t, programs: make([]*Program, len(t.Shapes)), facts: make([]facts, len(q.conds))}
	p.service = q.where.service(q.conds)
	p.blockFilter = newBlockFilter(p)
	return p
}

// enter makes a block the one that programs are judged for, and reports whether it can hold a match. Filters are asked first: they answer
// for many blocks at once.
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

// enterUnasked makes a block the one that programs are judged for, and does not ask which shapes it has.
func (p *Plan) EnterBlockUnchecked(block int) {
	p.block = block
	p.blockSeq++
}

// enterAny prepares for rows of a block of which nothing is known.
func (p *Plan) EnterUnknownBlock() { p.EnterBlockUnchecked(unknownBlock) }

const unknownBlock = -1

// program returns the program of a shape, judged for the block, in which no row of the shape lasts longer than longest; nil where the
// tables do not have the shape.
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

// isNever reports whether the rows of a shape are already known not to match. The tables must have the shape.
func (p *Plan) NeverMatches(shape uint32) bool { return p.programs[shape] == &p.never }

// mayMatch reports whether rows of a shape can match. It is false where the tables do not have the shape.
func (p *Plan) MayMatch(shape uint32) bool {
	return int(shape) < len(p.programs) && p.programOf(shape) != &p.never
}

// bound returns the program of a shape, which it makes when it is first asked for. The many shapes that cannot match share one.
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

// judge says what is known of an expression without looking at rows.
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
	decisive := no // a part with this verdict decides
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
	if !l.cond.hasFilterText || l.resource || l.unfiltered || l.encoded && !l.cond.onlyText || p.mayHold(l.number) {
		return depends
	}
	return no
}

// held asks the filter of the block for what a condition asks for.
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

// judgeDuration judges a condition on durations between 1 and longest.
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
	asked := tracestore.Cond{Op: p.query.conds[c].Op, Value: p.query.conds[c].Value,
		Field: tracestore.Field{Place: tracestore.ResourceAttribute, Key: p.query.conds[c].Field.Key}}
	f.holds = make([]bool, len(p.Tables.Resources))
	some, all := false, true
	for i := range p.Tables.Resources {
		r := &p.Tables.Resources[i]
		if r.Tenant != p.query.tenant {
			continue
		}
		f.holds[i] = tracestore.Match(asked, tracestore.Span{Resource: &r.Resource})
		some, all = some || f.holds[i], all && f.holds[i]
	}
	f.all = depends
	if some == all {
		f.all = verdictOf(all)
	}
	return f
}

// maxJudged is the greatest number of words of a column that are looked at to find out that none or all of them match.
const maxEvaluatedWords = 1 << 14

// wordFacts returns what is known of a condition on the texts of a column.
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

// value returns what a condition sees of a cell.
func (p *Plan) Value(column uint32, c rows.Cell) otlpdata.Value {
	if p.Tables.Columns[column].Place == rows.Name {
		s := otlpdata.Span{Name: p.Tables.Text(column, c)}
		return otlpdata.StringValue(s.Operation())
	}
	return p.Tables.Value(column, c)
}

// anyLength is the bound on durations where none is known.
const AnyDuration = math.MaxUint64
