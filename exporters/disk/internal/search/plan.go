package search

import (
	"math"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// plan is a query bound to a source. Everything in it is made when it is first needed.
type plan struct {
	query    *query
	source   source.Source
	tables   *rows.Tables
	programs []*program          // by shape
	never    program             // of all shapes whose rows cannot match, whatever the block
	service  string              // of all spans that can match; "" where the query names none
	filtered *filtered           // nil: no condition can be denied by filters
	facts    []facts             // by condition
	block    int                 // that is judged or examined at the moment
	turn     int                 // counts blocks, so that what was said about an earlier one is known to be old
	shapes   []source.BlockShape // scratch
	slab     slab[program]
	leaves   slab[leaf]
	common   struct { // scratch: what spans of a shape have in common
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
	held      bool                  // a row of the block may have the text
	turn      int                   // that held is of
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
type program struct {
	root node
	// Of the block of a turn:
	turn  int
	now   verdict
	count int     // of candidates
	rows  []int32 // the candidates
}

// node is an expression of which the parts that a shape decides are gone.
type node struct {
	known verdict // depends, unless the shape decided everything
	kind  kind
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
	blobs          bool // so does what is encoded in cells
	duration       bool
	parent         bool
}

// position is a cell of a row.
type position struct {
	index  int // in Shape.Columns
	column uint32
	words  *wordFacts // of strings
}

func newPlan(q *query, src source.Source, t *rows.Tables) *plan {
	p := &plan{query: q, source: src, tables: t, programs: make([]*program, len(t.Shapes)), facts: make([]facts, len(q.conds))}
	p.service = q.where.service(q.conds)
	p.filtered = newFiltered(p)
	return p
}

// enter makes a block the one that programs are judged for, and reports whether it can hold a match. Filters are asked first: they answer
// for many blocks at once.
func (p *plan) enter(block int) bool {
	p.enterUnasked(block)
	if p.filtered != nil && !p.filtered.possible(p) {
		return false
	}
	shapes, known := p.source.BlockShapes(p.shapes[:0], block)
	p.shapes = shapes
	possible := !known
	for _, s := range shapes {
		if pr := p.program(s.Shape, s.Longest.End()); pr != nil && pr.now != no {
			possible = true
		}
	}
	return possible
}

// enterUnasked makes a block the one that programs are judged for, and does not ask which shapes it has.
func (p *plan) enterUnasked(block int) {
	p.block = block
	p.turn++
}

// enterAny prepares for rows of a block of which nothing is known.
func (p *plan) enterAny() { p.enterUnasked(unknownBlock) }

const unknownBlock = -1

// program returns the program of a shape, judged for the block, in which no row of the shape lasts longer than longest; nil where the
// tables do not have the shape.
func (p *plan) program(shape uint32, longest uint64) *program {
	if int(shape) >= len(p.programs) {
		return nil
	}
	pr := p.programs[shape]
	if pr == &p.never {
		return pr
	}
	if pr = p.bound(shape); pr != &p.never && pr.turn != p.turn {
		pr.turn, pr.count, pr.rows = p.turn, 0, nil
		pr.now = p.judge(&pr.root, longest)
	}
	return pr
}

// bound returns the program of a shape, which it makes when it is first asked for. The many shapes that cannot match share one.
func (p *plan) bound(shape uint32) *program {
	pr := p.programs[shape]
	if pr != nil {
		return pr
	}
	pr = &p.never
	if p.service == "" || p.service == p.tables.Shapes[shape].Service {
		if root := p.bind(shape); root.known != no {
			pr = p.slab.add(program{root: root})
		}
	}
	p.programs[shape] = pr
	return pr
}

// judge says what is known of an expression without looking at rows.
func (p *plan) judge(n *node, longest uint64) verdict {
	if n.known != depends {
		return n.known
	}
	switch n.kind {
	case oneCond:
		return p.judgeLeaf(n.leaf, longest)
	case noneOf:
		return negate(p.judge(&n.parts[0], longest))
	}
	decisive := no // a part with this verdict decides
	if n.kind == anyOf {
		decisive = yes
	}
	all := negate(decisive)
	for i := range n.parts {
		switch v := p.judge(&n.parts[i], longest); v {
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

func (p *plan) judgeLeaf(l *leaf, longest uint64) verdict {
	if l.duration {
		return judgeDuration(l.cond, longest)
	}
	if !l.cond.asks || l.resource || l.unfiltered || l.blobs && !l.cond.onlyText || p.held(l.number) {
		return depends
	}
	return no
}

// held asks the filter of the block for what a condition asks for.
func (p *plan) held(c int) bool {
	if p.block == unknownBlock {
		return true
	}
	f := &p.facts[c]
	if f.turn != p.turn {
		f.turn = p.turn
		f.held = p.source.MayHold(p.block, p.query.conds[c].Field.Key, p.query.conds[c].ask)
	}
	return f.held
}

// judgeDuration judges a condition on durations between 1 and longest.
func judgeDuration(c *cond, longest uint64) verdict {
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
func (p *plan) resourceFacts(c int) *resourceFacts {
	f := &p.facts[c].resources
	if f.holds != nil {
		return f
	}
	asked := tracestore.Cond{Op: p.query.conds[c].Op, Value: p.query.conds[c].Value,
		Field: tracestore.Field{Place: tracestore.ResourceAttribute, Key: p.query.conds[c].Field.Key}}
	f.holds = make([]bool, len(p.tables.Resources))
	some, all := false, true
	for i := range p.tables.Resources {
		r := &p.tables.Resources[i]
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
const maxJudged = 1 << 14

// wordFacts returns what is known of a condition on the texts of a column.
func (p *plan) wordFacts(c int, column uint32) *wordFacts {
	f := &p.facts[c]
	if w := f.words[column]; w != nil {
		return w
	}
	w := &wordFacts{all: depends, memo: make([]uint8, len(p.tables.Words[column]))}
	if words, complete := p.source.Words(column); complete && len(words) <= maxJudged {
		w.all = p.judgeWords(&p.query.conds[c], column, words)
	}
	if f.words == nil {
		f.words = make(map[uint32]*wordFacts)
	}
	f.words[column] = w
	return w
}

func (p *plan) judgeWords(c *cond, column uint32, words []string) verdict {
	some, all := false, true
	for _, word := range words {
		holds := c.Holds(p.value(column, rows.Cell{Data: word}))
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
func (p *plan) value(column uint32, c rows.Cell) otlpdata.Value {
	if p.tables.Columns[column].Place == rows.Name {
		s := otlpdata.Span{Name: p.tables.Text(column, c)}
		return otlpdata.StringValue(s.Operation())
	}
	return p.tables.Value(column, c)
}

// anyLength is the bound on durations where none is known.
const anyLength = math.MaxUint64
