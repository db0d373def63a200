package scan

import (
	"slices"
)

// filtered finds blocks that filters rule out as a whole, without looking at the shapes that occur in them: there are thousands of blocks,
// and they differ only in which of the few texts that the query asks for they may hold.
type blockFilter struct {
	conds      []int           // that filters can deny
	candidates []*Program      // of the shapes whose rows can match at all; nil until they are needed
	known      map[uint64]bool // by set of conditions that are not denied: whether a row can match
}

// maxFiltered is how many conditions fit into a set.
const maxFilterConds = 64

// newFiltered returns nil for a query that filters say nothing about.
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

// possible reports whether a row of the plan's block can match by what filters say.
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

// judge judges all shapes.
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

// service returns the service that all spans on which the expression holds are of, and "" where none is named.
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
