package aggregate

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

type groupTotal struct {
	total   total
	counter *storequery.GroupCounter
	want    *tracestore.GroupQuery
}

// counts returns what was counted, for add.
func (t *groupTotal) counts() groupCounts { return groupCounts{t.total, string(t.counter.Append(nil))} }

func (t *groupTotal) add(c *groupCounts) {
	t.total.merge(&c.total)
	t.counter.Add(c.values)
}

// groupSource counts the spans of one source in groups. Each value gets a value number, which is
// looked up by word, number or resource. Value numbers become texts at the end.
type groupSource struct {
	to        *groupTotal
	plan      *scan.Plan
	shapes    []*groupShape // nil until needed
	columns   []groupColumn
	resources [tracestore.MaxGroupFields][]valueNumber // of each field, by resource; nil until needed
	values    []tracestore.GroupValue
	numbers   map[tracestore.GroupValue]valueNumber
	groups    []groupTally
	index     map[[tracestore.MaxGroupFields]valueNumber]int // 1 + index in groups
	// numberInResource: a resource has the measured field.
	numberInResource bool
	// kept is the approximate size in bytes of the above, without resources and the counts of
	// spans. counted is the size of these counts.
	kept, counted int
}

// valueNumber is 1 + the index of a value in groupSource.values, or 0 for none, or severalValues.
type valueNumber uint32

// severalValues is the number of a resource or row that may have several values: its spans must be
// assembled.
const severalValues = ^valueNumber(0)

// groupTally counts the spans of a group.
type groupTally struct {
	key   [tracestore.MaxGroupFields]valueNumber
	spans tracestore.Group // without values; finish moves parts and buckets to it
	parts []*partPage      // nil: no span is in the parts of the page
	// buckets counts the measured numbers of a distribution by part and bucket; see bucketKey.
	buckets numbers
}

// pageParts is the number of parts in a partPage.
const pageParts = 16

// partPage counts the spans of a group in a few successive parts. Most groups have spans in few of
// all parts.
type partPage struct {
	spans   [pageParts]uint64
	numbers []tracestore.Numbers // without buckets; nil: none are measured
}

// groupShape says where the spans of a shape have the values of the fields.
type groupShape struct {
	whole   bool // spans must be assembled
	encoded bool // spans with a value in an encoded cell must be assembled too
	fields  [tracestore.MaxGroupFields]groupField
	number  groupNumber
	sameKey bool // no field differs between the spans
	tally   int  // 1 + index in groupSource.groups if sameKey, or 0
}

// groupNumber says where the spans of a shape have the measured number.
type groupNumber struct {
	constant    float64 // if hasConstant
	hasConstant bool
	varies      bool // it is in a cell
	cell        facetCell
	duration    bool // it is the duration
}

// groupField says where the spans of a shape have the value of one field.
type groupField struct {
	constant valueNumber // if it is neither in a cell nor in the resource
	varies   bool        // it is in a cell
	cell     facetCell
	resource bool
	encoded  []int // cells that may have further values, by index in Shape.Columns
}

// groupColumn holds the value numbers of a column.
type groupColumn struct {
	words   []valueNumber          // by word
	numbers map[uint64]valueNumber // of cells without a word
}

// maxGroupsKept is the approximate size in bytes at which a groupSource adds its counts to the
// totals. If what it knows of values and shapes takes more than half of this size, it starts over.
const maxGroupsKept = 4 << 20

func newGroupSource(to *groupTotal, p *scan.Plan) *groupSource {
	g := &groupSource{to: to, plan: p, shapes: make([]*groupShape, len(p.Tables.Shapes))}
	if to.want.Measure != tracestore.MeasureNone {
		g.numberInResource = slices.ContainsFunc(p.Tables.Resources, func(r rows.Resource) bool { return hasKey(r.Attributes, to.want.Of.Key) })
	}
	g.reset()
	return g
}

// reset forgets all numbers.
func (g *groupSource) reset() {
	clear(g.shapes)
	g.columns = make([]groupColumn, len(g.plan.Tables.Columns))
	g.resources = [tracestore.MaxGroupFields][]valueNumber{}
	g.values, g.groups, g.kept, g.counted = nil, nil, 0, 0
	g.numbers = make(map[tracestore.GroupValue]valueNumber)
	g.index = make(map[[tracestore.MaxGroupFields]valueNumber]int)
}

// rows counts rows of a shape.
func (g *groupSource) rows(x *scan.Filter, shape uint32, set []int32) error {
	s := g.shape(shape)
	if s.whole {
		return g.wholeRows(x, set)
	}
	if err := g.load(x, s); err != nil {
		return err
	}
	failed := g.plan.Tables.Shapes[shape].Status == otlpdata.StatusError
	for i, row := range set {
		tally := s.tally
		if tally == 0 {
			key, err := g.key(x, s, row)
			if err != nil {
				return err
			}
			if slices.Contains(key[:], severalValues) {
				if err := g.wholeRows(x, set[i:i+1]); err != nil {
					return err
				}
				continue
			}
			if tally = g.tally(key); s.sameKey {
				s.tally = tally
			}
		}
		head := rows.Head{Start: x.Starts[row], End: x.Ends[row]}
		o := tracestore.Observation{Start: head.Start, Duration: head.Duration(), Failed: failed, Count: 1}
		if err := g.measure(x, &s.number, row, &o); err != nil {
			return err
		}
		g.observe(&g.groups[tally-1], &o)
	}
	if g.kept+g.counted > maxGroupsKept {
		if g.finish(); g.kept > maxGroupsKept/2 {
			g.reset()
		}
	}
	return nil
}

// load reads what rows of a shape need.
func (*groupSource) load(x *scan.Filter, s *groupShape) error {
	if err := x.LoadStarts(); err != nil {
		return err
	}
	if err := x.LoadEnds(); err != nil {
		return err
	}
	for i := range s.fields {
		if s.fields[i].resource {
			return x.LoadResources()
		}
	}
	return nil
}

func (g *groupSource) wholeRows(x *scan.Filter, set []int32) error {
	for _, row := range set {
		span, err := x.Span(row)
		if err != nil {
			return err
		}
		g.to.counter.AddSpan(span)
	}
	return nil
}

// key returns the value numbers of a row, or severalValues if the span must be assembled.
func (g *groupSource) key(x *scan.Filter, s *groupShape, row int32) (key [tracestore.MaxGroupFields]valueNumber, _ error) {
	if s.encoded {
		for i, by := range g.to.want.By {
			if cells := s.fields[i].encoded; len(cells) > 0 {
				if may, err := x.MayEncode(by, row, cells); may || err != nil {
					key[i] = severalValues
					return key, err
				}
			}
		}
	}
	for i := range g.to.want.By {
		f := &s.fields[i]
		switch {
		case f.varies:
			cell, err := x.Block.Cell(int(row), f.cell.index)
			if err != nil {
				return key, err
			}
			if key[i], err = g.cell(f.cell.column, cell); err != nil {
				return key, err
			}
		case f.resource:
			id := x.Resources[row]
			if int(id) >= len(g.resources[i]) {
				return key, scan.ErrReference
			}
			key[i] = g.resources[i][id]
		default:
			key[i] = f.constant
		}
	}
	return key, nil
}

// measure sets the measured number of a row.
func (g *groupSource) measure(x *scan.Filter, n *groupNumber, row int32, o *tracestore.Observation) error {
	switch {
	case n.duration:
		o.Number, o.HasNumber = float64(o.Duration), true
	case n.varies:
		cell, err := x.Block.Cell(int(row), n.cell.index)
		if err != nil {
			return err
		}
		o.Number, o.HasNumber = tracestore.MeasuredNumber(g.plan.Value(n.cell.column, cell))
	default:
		o.Number, o.HasNumber = n.constant, n.hasConstant
	}
	return nil
}

// Approximate sizes in bytes of a group with the first buckets of its histogram, of a bucket, and
// of a value in addition to its text.
const (
	tallySize  = 300
	bucketSize = 32
	valueSize  = 150
)

// tally returns 1 + the index in groups of the group with a key.
func (g *groupSource) tally(key [tracestore.MaxGroupFields]valueNumber) int {
	i := g.index[key]
	if i == 0 {
		g.groups = append(g.groups, groupTally{key: key})
		i = len(g.groups)
		g.index[key] = i
		g.kept += tallySize
	}
	return i
}

// observe counts a span in a group.
func (g *groupSource) observe(t *groupTally, o *tracestore.Observation) {
	parts, measure := g.to.counter.Parts(), g.to.want.Measure
	if measure == tracestore.MeasureDistribution {
		measure = tracestore.MeasureTotals // the rest is in t.buckets
		if o.HasNumber {
			g.counted += t.countBucket(bucketKey(parts, o)) * bucketSize
		}
	}
	if parts.N > 0 {
		g.counted += t.countPart(parts, o, measure)
		parts, measure = tracestore.Parts{}, tracestore.MeasureNone
	}
	g.counted += t.spans.Observe(o, parts, measure) * bucketSize
}

// countPart counts a span in its part, and returns how many bytes were added.
func (t *groupTally) countPart(parts tracestore.Parts, o *tracestore.Observation, measure tracestore.Measure) (added int) {
	if t.parts == nil {
		t.parts = make([]*partPage, (parts.N+pageParts-1)/pageParts)
		t.spans.First, t.spans.Last = o.Start, o.Start
		added += 8 * len(t.parts)
	}
	t.spans.First, t.spans.Last = min(t.spans.First, o.Start), max(t.spans.Last, o.Start)
	at := parts.At(o.Start)
	page, i := t.parts[at/pageParts], at%pageParts
	if page == nil {
		page = new(partPage)
		t.parts[at/pageParts] = page
		added += int(unsafe.Sizeof(*page))
		if measure != tracestore.MeasureNone {
			page.numbers = make([]tracestore.Numbers, pageParts)
			added += pageParts * int(unsafe.Sizeof(page.numbers[0]))
		}
	}
	page.spans[i] += o.Count
	if measure != tracestore.MeasureNone && o.HasNumber {
		page.numbers[i].Observe(o.Number, o.Count, measure)
	}
	return added
}

// countBucket counts a number with a bucketKey, and returns how many buckets were added.
func (t *groupTally) countBucket(key uint64) (added int) {
	if known := t.buckets.find(key); known != nil {
		known.count.all++
		return 0
	}
	t.buckets.add(key, counts{all: 1})
	return 1
}

// bucketBits is enough for the buckets of tracestore.NumberBucketOf; firstBucket is below all of
// them.
const bucketBits, firstBucket = 32, math.MinInt32

// bucketKey returns the part of a span and the bucket of its number as one number, in their order.
func bucketKey(parts tracestore.Parts, o *tracestore.Observation) uint64 {
	part := 0
	if parts.N > 0 {
		part = parts.At(o.Start)
	}
	return uint64(part)<<bucketBits | uint64(tracestore.NumberBucketOf(o.Number)-firstBucket)
}

// finish moves the counts of parts and buckets to spans. It overwrites parts and numbers, which
// then hold the counts of parts.
func (t *groupTally) finish(parts []uint64, numbers []tracestore.Numbers) {
	if t.parts != nil {
		clear(parts)
		clear(numbers)
		for i, page := range t.parts {
			if page != nil {
				copy(parts[i*pageParts:], page.spans[:])
				copy(numbers[min(i*pageParts, len(numbers)):], page.numbers)
			}
		}
		t.spans.Parts, t.spans.Numbers = parts, numbers
	}
	slices.SortFunc(t.buckets.list, func(a, b numberTally) int { return cmp.Compare(a.num, b.num) })
	for _, b := range t.buckets.list {
		of := &t.spans.Numbers[b.num>>bucketBits]
		of.Buckets = append(of.Buckets, tracestore.NumberBucket{Bucket: int(b.num&(1<<bucketBits-1)) + firstBucket, Count: b.count.all})
	}
}

// finish adds all counts to the groups, and forgets them.
func (g *groupSource) finish() {
	parts := make([]uint64, g.to.counter.Parts().N)
	var numbers []tracestore.Numbers
	if g.to.want.Measure != tracestore.MeasureNone {
		numbers = make([]tracestore.Numbers, len(parts))
	}
	for i := range g.groups {
		t := &g.groups[i]
		if t.spans.Durations.Count() == 0 {
			continue
		}
		t.finish(parts, numbers)
		for at, n := range t.key {
			if n > 0 {
				t.spans.Values[at] = g.values[n-1]
			}
		}
		g.to.counter.AddTotal(&t.spans)
		g.to.counter.AddGroup(&t.spans)
		*t = groupTally{key: t.key}
	}
	g.counted = 0
}

// number returns the number of a value.
func (g *groupSource) number(text string) valueNumber {
	v := tracestore.GroupValue{Text: storequery.FacetText(text), Present: true}
	if n, known := g.numbers[v]; known {
		return n
	}
	v.Text = strings.Clone(v.Text)
	g.values = append(g.values, v)
	n := valueNumber(len(g.values))
	g.numbers[v] = n
	g.kept += valueSize + len(v.Text)
	return n
}

// cell returns the number of the value of a cell.
func (g *groupSource) cell(column uint32, cell rows.Cell) (valueNumber, error) {
	c, col := &g.columns[column], &g.plan.Tables.Columns[column]
	switch {
	case cell.Word > 0:
		if c.words == nil {
			c.words = make([]valueNumber, len(g.plan.Tables.Words[column]))
			g.kept += 4 * len(c.words)
		}
		if int(cell.Word) > len(c.words) {
			return 0, scan.ErrReference
		}
		n := &c.words[cell.Word-1]
		if *n == 0 {
			*n = g.number(g.text(column, cell))
		}
		return *n, nil
	case col.Kind != otlpdata.ValueInt && col.Kind != otlpdata.ValueDouble && col.Kind != otlpdata.ValueBool:
		return g.number(g.text(column, cell)), nil
	}
	n, known := c.numbers[cell.Num]
	if !known {
		if c.numbers == nil {
			c.numbers = make(map[uint64]valueNumber)
		}
		n = g.number(g.text(column, cell))
		c.numbers[cell.Num] = n
		g.kept += bucketSize
	}
	return n, nil
}

// text returns the text of a value in groups.
func (g *groupSource) text(column uint32, cell rows.Cell) string {
	text := g.plan.Value(column, cell).AsString()
	if g.plan.Tables.Columns[column].Place == rows.Name {
		return (&otlpdata.Span{Name: text}).Operation()
	}
	return text
}
