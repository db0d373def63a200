package scan

import (
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// blockFilter rules out blocks by their filters alone. A source has thousands of blocks, but their
// filters differ only in which of the query's few texts they may hold. The blockFilter therefore
// evaluates all shapes once for each set of such texts, not for each block.
type blockFilter struct {
	conds      []int           // numbers of the conditions that filters can exclude
	candidates []*Program      // programs of the shapes whose rows can match; nil until needed
	known      map[uint64]bool // by set of conditions that are not excluded: whether a row can match
}

// maxFilterConds is the number of conditions that fit into a set.
const maxFilterConds = 64

// newBlockFilter returns nil if filters can exclude no condition of the query.
func newBlockFilter(p *Plan) *blockFilter {
	f := &blockFilter{}
	integers := p.Source.HoldsIntegers()
	for i := range p.query.conds {
		if c := &p.query.conds[i]; c.hasFilterText && (integers || !c.Value.IsNumber) {
			f.conds = append(f.conds, i)
		}
	}
	if len(f.conds) == 0 || len(f.conds) > maxFilterConds {
		return nil
	}
	return f
}

// mayMatch reports whether a row of the plan's current block can match according to filters.
func (f *blockFilter) mayMatch(p *Plan) bool {
	set, all := uint64(0), uint64(1)<<len(f.conds)-1
	for i, c := range f.conds {
		if p.mayHold(c) {
			set |= 1 << i
		}
	}
	if set == all {
		return true
	}
	possible, known := f.known[set]
	if !known {
		possible = f.evaluate(p)
		if f.known == nil {
			f.known = make(map[uint64]bool)
		}
		f.known[set] = possible
	}
	return possible
}

// evaluate evaluates all shapes.
func (f *blockFilter) evaluate(p *Plan) bool {
	if f.candidates == nil {
		f.candidates = make([]*Program, 0, slabSize)
		for shape := range p.programs {
			if pr := p.programOf(uint32(shape)); pr != &p.never {
				f.candidates = append(f.candidates, pr)
			}
		}
	}
	return slices.ContainsFunc(f.candidates, func(pr *Program) bool { return p.evaluate(&pr.root, AnyDuration) != no })
}

// Excludes reports whether a source is known to have no span that matches, because it lacks the
// service that the query names. It does not read the vocabulary, which may be large.
func (q *Query) Excludes(src source.Source) bool {
	service := q.where.service(q.conds)
	s, ok := src.(source.Services)
	return ok && service != "" && !s.MayHaveService(q.tenant, service)
}

// service returns the service of all spans for which the expression can hold, or "" if the
// expression does not select one.
func (e *expr) service(conds []cond) string {
	switch {
	case e.kind == condExpr && conds[e.cond].service:
		return conds[e.cond].Value.Text
	case e.kind != andExpr:
		return ""
	}
	for i := range e.parts {
		if s := e.parts[i].service(conds); s != "" {
			return s
		}
	}
	return ""
}
