package block

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/column"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// checker compares a block with the rows that were encoded. Its methods return errors of the block,
// and fail the test if there are differences.
type checker struct {
	testing.TB
	*Layout
	in input
	b  *Block
}

// all returns the checks of a row.
func (c *checker) all() []func(row int) error {
	return []func(int) error{c.shapes, c.resources, c.starts, c.ends, c.head, c.cells, c.cell, c.traceID, c.expect, c.vectors, c.columns}
}

func (c *checker) traceID(i int) error {
	id, err := c.b.TraceID(i)
	if err == nil && id != c.in.heads[i].TraceID {
		c.Fatalf("trace of row %d: got %s, want %s", i, id, c.in.heads[i].TraceID)
	}
	return err
}

// expect announces a row and the next two, and reads the cells of the row.
func (c *checker) expect(i int) error {
	var rows []int32
	for row := i; row < min(i+3, len(c.in.heads)); row++ {
		rows = append(rows, int32(row))
	}
	c.b.Expect(rows)
	return c.cells(i)
}

func list[T comparable](c *checker, name string, row int, want T, read func() ([]T, error)) error {
	got, err := read()
	if err != nil {
		return err
	}
	if len(got) != len(c.in.heads) || got[row] != want {
		c.Fatalf("%s of row %d of %d: got %v, want %v", name, row, len(got), got[row], want)
	}
	return nil
}

func (c *checker) shapes(i int) error { return list(c, "shape", i, c.in.heads[i].Shape, c.b.Shapes) }
func (c *checker) resources(i int) error {
	return list(c, "resource", i, c.in.heads[i].Resource, c.b.Resources)
}
func (c *checker) starts(i int) error { return list(c, "start", i, c.in.heads[i].Start, c.b.Starts) }
func (c *checker) ends(i int) error   { return list(c, "end", i, c.in.heads[i].End, c.b.Ends) }

func (c *checker) head(i int) error {
	var h rows.Head
	if err := c.b.Head(i, &h); err != nil {
		return err
	}
	if h != c.in.heads[i] {
		c.Fatalf("head of row %d:\ngot  %+v\nwant %+v", i, h, c.in.heads[i])
	}
	return nil
}

func (c *checker) cells(i int) error {
	before := []rows.Cell{{Num: 1}}
	got, err := c.b.Cells(before, i)
	if err != nil {
		return err
	}
	if want := c.in.row(c.tables, i); got[0] != before[0] || !slices.Equal(got[1:], want) {
		c.Fatalf("cells of row %d:\ngot  %+v\nwant %+v", i, got, want)
	}
	return nil
}

func (c *checker) cell(i int) error {
	want := c.in.row(c.tables, i)
	var failed error
	for p := len(want) - 1; p >= 0; p-- {
		got, err := c.b.Cell(i, p)
		if err != nil {
			failed = err
		} else if got != want[p] {
			c.Fatalf("cell %d of row %d: got %+v, want %+v", p, i, got, want[p])
		}
	}
	return failed
}

// expectAll announces all rows.
func (c *checker) expectAll() {
	rows := make([]int32, len(c.in.heads))
	for i := range rows {
		rows[i] = int32(i)
	}
	c.b.Expect(rows)
}

// vectors compares the cells of a row with those in vectors.
func (c *checker) vectors(i int) error {
	c.expectAll()
	ranks, err := c.b.Ranks()
	if err != nil {
		return err
	}
	shape := c.in.heads[i].Shape
	for p, want := range c.in.row(c.tables, i) {
		if slot := c.slotsOf(shape)[p]; slot.group == constant || c.groupsOf(shape)[slot.group].count > 1 {
			continue
		}
		list, err := c.b.Vector(shape, p)
		if err != nil {
			return err
		}
		if got := list.Cell(ranks[i]); got != want {
			c.Fatalf("cell %d of row %d: got %+v in a vector, want %+v", p, i, got, want)
		}
	}
	return nil
}

// columns compares the columns of a block with the cells of its rows. Because it reads the whole
// block, it does this only for every 16th row.
func (c *checker) columns(i int) error {
	if i%16 > 0 {
		return nil
	}
	c.expectAll()
	columns, err := c.b.Columns()
	if err != nil {
		return err
	}
	cells := make(map[uint32]map[rows.Cell]int)
	for _, column := range columns {
		list, err := c.b.Column(column.ID)
		if err != nil {
			return err
		}
		cells[column.ID] = make(map[rows.Cell]int)
		for i := range column.Cells {
			cells[column.ID][list.Cell(int32(i))]++
		}
	}
	for i, head := range c.in.heads {
		for p, want := range c.in.row(c.tables, i) {
			id := c.tables.Shapes[head.Shape].Columns[p]
			if slot := c.slotsOf(head.Shape)[p]; slot.group == constant {
				continue
			}
			if cells[id][want]--; cells[id][want] < 0 {
				c.Fatalf("column %d has too few of %+v", id, want)
			}
		}
	}
	return nil
}

// traces compares the trace table.
func (c *checker) traces() error {
	traces, err := c.b.Traces()
	if err != nil {
		return err
	}
	next := int32(0)
	for _, t := range traces {
		if t.First != next || t.Rows < 1 {
			c.Fatalf("%+v does not start at row %d", t, next)
		}
		tenant := c.tables.Resources[c.in.heads[next].Resource].Tenant
		for end := t.First + t.Rows; next < end; next++ {
			h := &c.in.heads[next]
			if h.TraceID != t.ID || c.tables.Resources[h.Resource].Tenant != tenant {
				c.Fatalf("row %d is not of trace %v of tenant %s", next, t.ID, tenant)
			}
		}
	}
	if int(next) != c.b.Len() || c.b.Len() != len(c.in.heads) {
		c.Fatalf("traces have %d rows, the block %d, the input %d", next, c.b.Len(), len(c.in.heads))
	}
	return nil
}

func check(t testing.TB, l *Layout, in input, data []byte, pool *Pool) *checker {
	t.Helper()
	b, err := pool.Open(l, data, "file", 7)
	if err != nil {
		t.Fatal(err)
	}
	return &checker{t, l, in, b}
}

func TestRoundTripInAnyOrder(t *testing.T) {
	var pool Pool // shared, so that blocks reuse memory from blocks of other layouts
	e := NewEncoder(column.Flush)
	for seed := range uint64(30) {
		s, l := randomSegment(seed, 1+int(seed)*3)
		for _, in := range s.blocks(300) {
			data, _ := in.encode(e, []byte("before"), l)
			r := rand.New(rand.NewPCG(seed, 1))
			for range 3 {
				c := check(t, l, in, data[len("before"):], &pool)
				for range 200 {
					if err := c.all()[r.IntN(len(c.all()))](r.IntN(len(in.heads))); err != nil {
						t.Fatal(err)
					}
				}
				for row := range in.heads {
					if err := errors.Join(c.head(row), c.cells(row)); err != nil {
						t.Fatal(err)
					}
				}
				if err := c.traces(); err != nil {
					t.Fatal(err)
				}
				c.b.Close()
			}
		}
	}
}

func TestRoundTripOfWorkload(t *testing.T) {
	s, l := workload(5000)
	in := s.blocks(len(s.heads))[0]
	data, _ := in.encode(NewEncoder(column.Merge), nil, l)
	c := check(t, l, in, data, &Pool{})
	for row := range in.heads {
		if err := errors.Join(c.head(row), c.cells(row)); err != nil {
			t.Fatal(err)
		}
	}
}

// oneTrace returns a layout with one shape without columns, and rows of one trace with the given
// ids and parents.
func oneTrace(t *testing.T, ids ...[2]byte) (*Layout, input) {
	tables := &rows.Tables{Shapes: make([]rows.Shape, 1), Resources: make([]rows.Resource, 1)}
	l, err := NewLayout(tables, make([][]*rows.Cell, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	var in input
	for _, id := range ids {
		in.add(rows.Head{SpanID: otlpdata.SpanID{id[0]}, ParentID: otlpdata.SpanID{id[1]}})
	}
	return l, in
}

func TestParents(t *testing.T) {
	l, in := oneTrace(t, [2]byte{1, 0}, [2]byte{2, 1}, [2]byte{3, 3}, [2]byte{0, 4},
		[2]byte{2, 2}, [2]byte{5, 9}, [2]byte{4, 0}, [2]byte{6, 8})
	data, _ := in.encode(NewEncoder(column.Flush), nil, l)
	c := check(t, l, in, data, &Pool{})
	for row := range in.heads {
		if err := c.head(row); err != nil {
			t.Fatal(err)
		}
	}
	want := []int32{parentNone, 0, 2, 6, 1, parentExplicit, parentNone, parentExplicit - 1}
	if !slices.Equal(c.b.heads.parents, want) {
		t.Errorf("parents are %v, want %v", c.b.heads.parents, want)
	}
}

func TestTracesOfTenantsWithOneID(t *testing.T) {
	tables := &rows.Tables{Shapes: make([]rows.Shape, 1), Resources: []rows.Resource{{Tenant: "a"}, {Tenant: "a"}, {Tenant: "b"}}}
	l, err := NewLayout(tables, make([][]*rows.Cell, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	var in input
	for _, resource := range []uint32{0, 1, 2, 2} {
		in.add(rows.Head{Resource: resource, TraceID: otlpdata.TraceID{1}, SpanID: otlpdata.SpanID{byte(resource)}, ParentID: otlpdata.SpanID{1}})
	}
	data, _ := in.encode(NewEncoder(column.Flush), nil, l)
	c := check(t, l, in, data, &Pool{})
	traces, err := c.b.Traces()
	id := otlpdata.TraceID{1}
	if want := []Trace{{id, 0, 2}, {id, 2, 2}}; err != nil || !slices.Equal(traces, want) {
		t.Errorf("traces are %v (%v), want %v", traces, err, want)
	}
	for row := range in.heads {
		if err := errors.Join(c.head(row), c.resources(row)); err != nil {
			t.Error(err)
		}
	}
	if got := c.b.heads.parents[3]; got != parentExplicit-1 {
		t.Errorf("parent belongs to another tenant: %d", got)
	}
}

func TestZone(t *testing.T) {
	s, l := randomSegment(5, 20)
	_, info := s.encode(NewEncoder(column.Flush), nil, l)
	want := Zone{BlockInfo: source.BlockInfo{Rows: len(s.heads), MinStart: s.heads[0].Start, MaxStart: s.heads[0].Start}}
	longest := map[uint32]uint64{}
	for i := range s.heads {
		h := &s.heads[i]
		want.MinStart, want.MaxStart = min(want.MinStart, h.Start), max(want.MaxStart, h.Start)
		longest[h.Shape] = max(longest[h.Shape], h.Duration())
	}
	for id := range uint32(len(s.tables.Shapes)) {
		if d, ok := longest[id]; ok {
			want.Shapes = append(want.Shapes, source.BlockShape{Shape: id, Longest: source.StepOf(d)})
		}
	}
	if fmt.Sprint(info) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", info, want)
	}
}

// TestWordOutsideOfDictionary encodes a cell that is a word although its column has no dictionary
// in the layout.
func TestWordOutsideOfDictionary(t *testing.T) {
	tables := &rows.Tables{Columns: []rows.Column{{Kind: otlpdata.ValueString}}, Words: [][]string{{"word"}},
		Shapes: []rows.Shape{{Columns: []uint32{0}}}, Resources: make([]rows.Resource, 1)}
	l, err := NewLayout(tables, [][]*rows.Cell{{nil}}, []bool{false})
	if err != nil {
		t.Fatal(err)
	}
	var in input
	in.add(rows.Head{}, rows.Cell{Word: 1})
	in.add(rows.Head{}, rows.Cell{Data: "text"})
	data, _ := in.encode(NewEncoder(column.Flush), nil, l)
	in.cells[0] = rows.Cell{Data: "word"}
	c := check(t, l, in, data, &Pool{})
	if err := errors.Join(c.cell(0), c.cell(1)); err != nil {
		t.Error(err)
	}
}

func TestEncodingIsDeterministic(t *testing.T) {
	s, l := randomSegment(1, 30)
	used := NewEncoder(column.Flush)
	other, otherLayout := randomSegment(2, 30)
	other.encode(used, nil, otherLayout)
	a, _ := s.encode(used, nil, l)
	b, _ := s.encode(NewEncoder(column.Flush), nil, l)
	if !slices.Equal(a, b) {
		t.Error("used encoder writes different bytes than a new one")
	}
}

func TestPoolIsSafeForConcurrentUse(t *testing.T) {
	s, l := randomSegment(3, 40)
	data, _ := s.encode(NewEncoder(column.Flush), nil, l)
	var pool Pool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				b, err := pool.Open(l, data, "file", 0)
				if err != nil {
					t.Error(err)
					return
				}
				c := checker{t, l, s.input, b}
				for row := range 20 {
					if err := errors.Join(c.head(row), c.cells(row)); err != nil {
						t.Error(err)
					}
				}
				b.Close()
			}
		})
	}
	wg.Wait()
}

// TestStringsOutliveTheBlock checks that strings stay valid when another block reuses the memory.
func TestStringsOutliveTheBlock(t *testing.T) {
	s, l := randomSegment(4, 40)
	data, _ := s.encode(NewEncoder(column.Flush), nil, l)
	mutable := slices.Clone(data)
	c := check(t, l, s.input, mutable, &Pool{})
	var cells [][]rows.Cell
	for row := range s.heads {
		got, err := c.b.Cells(nil, row)
		if err != nil {
			t.Fatal(err)
		}
		cells = append(cells, got)
	}
	pool := c.b.pool
	c.b.Close()
	clear(mutable)
	check(t, l, s.input, data, pool).cells(0)
	for row := range s.heads {
		if !slices.Equal(cells[row], s.row(&s.tables, row)) {
			t.Fatalf("cells of row %d changed", row)
		}
	}
}

func TestEncodePanicsOnInvalidInput(t *testing.T) {
	tables := &rows.Tables{Columns: []rows.Column{{Kind: otlpdata.ValueInt}}, Words: make([][]string, 1), Resources: make([]rows.Resource, 1),
		Shapes: []rows.Shape{{Columns: make([]uint32, MaxCells/MaxRows+1)}}}
	l, err := NewLayout(tables, [][]*rows.Cell{make([]*rows.Cell, MaxCells/MaxRows+1)}, make([]bool, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, MaxRows, MaxRows + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for %d rows", n)
				}
			}()
			NewEncoder(column.Flush).Encode(nil, l, make([]rows.Head, n), nil, make([]int32, n))
		}()
	}
}

func TestNewLayoutRejectsMismatches(t *testing.T) {
	tables := func() *rows.Tables {
		return &rows.Tables{Columns: []rows.Column{{Kind: otlpdata.ValueString}}, Words: [][]string{{"a"}},
			Shapes: []rows.Shape{{Columns: []uint32{0}}}}
	}
	valid := [][]*rows.Cell{{{Word: 1}}}
	for name, build := range map[string]func() (*Layout, error){
		"no constants":    func() (*Layout, error) { return NewLayout(tables(), nil, []bool{false}) },
		"no dictionaries": func() (*Layout, error) { return NewLayout(tables(), valid, nil) },
		"positions":       func() (*Layout, error) { return NewLayout(tables(), [][]*rows.Cell{{}}, []bool{true}) },
		"word":            func() (*Layout, error) { return NewLayout(tables(), [][]*rows.Cell{{{Word: 2}}}, []bool{true}) },
		"column": func() (*Layout, error) {
			t := tables()
			t.Shapes[0].Columns[0] = 1
			return NewLayout(t, valid, []bool{true})
		},
	} {
		if _, err := build(); !errors.Is(err, errLayout) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	l, err := NewLayout(tables(), valid, []bool{true})
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := l.Constant(0, 0); !ok || c != *valid[0][0] {
		t.Errorf("constant is %v, %v", c, ok)
	}
}
