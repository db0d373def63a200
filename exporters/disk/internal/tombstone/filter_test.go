package tombstone

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// span holds the fields that rules match, and an id.
type span struct {
	tenant, service string
	trace           byte
	start           uint64
	id              uint32
}

// store holds the same random spans in a memtable and in a segment.
type store struct {
	spans []span
	fail  *vfstest.Rule // reads of the segment fail while it is switched on
	table source.Source
	file  *segment.Segment
}

func newStore(t *testing.T, rnd *rand.Rand, count int) *store {
	t.Helper()
	s := &store{fail: &vfstest.Rule{Op: vfstest.OpRead, Err: errors.New("disk removed")}}
	s.fail.Switch(false)
	tenants := 1 + rnd.IntN(2)
	table := memtable.New(memtable.Options{BlockRows: 16})
	for i := range count {
		sp := span{tenant: []string{"", "a"}[rnd.IntN(tenants)], service: string(rune('p' + rnd.IntN(4))),
			trace: byte(rnd.IntN(20)), id: uint32(i + 1)}
		sp.start = uint64(sp.trace)*10 + rnd.Uint64N(10)
		s.spans = append(s.spans, sp)
		if _, err := table.Append(sp.batch(t, rnd), 0); err != nil {
			t.Fatal(err)
		}
	}
	fs := vfstest.Inject(vfstest.NewMem(), s.fail)
	if _, err := segment.Write(fs, "/s.seg", segment.Input(table.Input()), segment.Meta{}, segment.Options{}); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.file, err = segment.Open(fs, "/s.seg"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.file.Close() })
	s.table = table.Source()
	return s
}

func (s *span) batch(t *testing.T, rnd *rand.Rand) *otlpdata.Batch {
	t.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", s.service)
	rs.Resource().Attributes().PutStr("host", string(rune('0'+rnd.IntN(3))))
	sp := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	sp.SetTraceID(pcommon.TraceID{s.trace})
	sp.SetSpanID(pcommon.SpanID{byte(s.id >> 8), byte(s.id)})
	sp.SetName("op " + string(rune('a'+rnd.IntN(3))))
	sp.SetStartTimestamp(pcommon.Timestamp(s.start))
	sp.SetEndTimestamp(pcommon.Timestamp(s.start + 1))
	sp.Attributes().PutInt("number", int64(s.id))
	enc, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	b, err := otlpdata.FromOTLP(enc, otlpdata.Meta{Tenant: s.tenant}, otlpdata.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// randomRule returns a rule of a service, a service and time range, a time range, or traces.
func randomRule(rnd *rand.Rand, number uint64) *Rule {
	m := &Tombstone{Number: number, Through: 1, Made: time.Unix(int64(number), 0),
		Tenant: []string{"", "a", "b"}[rnd.IntN(3)], To: math.MaxUint64}
	switch rnd.IntN(4) {
	case 0:
		m.Service = string(rune('p' + rnd.IntN(5)))
	case 1:
		m.Service = string(rune('p' + rnd.IntN(5)))
		m.From = rnd.Uint64N(200)
		m.To = m.From + rnd.Uint64N(100)
	case 2:
		m.From = rnd.Uint64N(200)
		m.To = m.From + rnd.Uint64N(60)
	default:
		for range 1 + rnd.IntN(3) {
			m.Traces = append(m.Traces, otlpdata.TraceID{byte(rnd.IntN(25))})
		}
	}
	return NewRule(m)
}

func (s *span) hiddenBy(r *Rule) bool {
	if s.tenant != r.Tenant {
		return false
	}
	if len(r.Traces) > 0 {
		return slices.Contains(r.Traces, otlpdata.TraceID{s.trace})
	}
	return (r.Service == "" || r.Service == s.service) && r.From <= s.start && s.start <= r.To
}

// visible returns the spans that no rule hides, and how many spans each rule is the first to hide.
func (s *store) visible(rules []*Rule) (visible map[uint32]span, by map[uint64]int) {
	visible, by = map[uint32]span{}, map[uint64]int{}
	for _, sp := range s.spans {
		if i := slices.IndexFunc(rules, sp.hiddenBy); i >= 0 {
			by[rules[i].Number]++
		} else {
			visible[sp.id] = sp
		}
	}
	return visible, by
}

// read returns all rows of a source by span id, block by block.
func read(t *testing.T, s source.Source) map[uint32]span {
	t.Helper()
	infos, err := s.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	found := map[uint32]span{}
	for i := range infos {
		b, err := s.Open(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		if b.Len() != infos[i].Rows {
			t.Errorf("block %d: %d rows, BlockInfo says %d", i, b.Len(), infos[i].Rows)
		}
		readRows(t, s, b, -1, found)
		b.Close()
	}
	return found
}

// readRows reads one row, or all rows if only is -1.
func readRows(t *testing.T, s source.Source, b source.Block, only int, found map[uint32]span) {
	t.Helper()
	tables, err := s.Tables()
	shapes, err1 := b.Shapes()
	resources, err2 := b.Resources()
	starts, err3 := b.Starts()
	ends, err4 := b.Ends()
	if err := errors.Join(err, err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	for row := range b.Len() {
		if only >= 0 && row != only {
			continue
		}
		var h rows.Head
		if err := b.Head(row, &h); err != nil {
			t.Fatal(err)
		}
		if h.Shape != shapes[row] || h.Resource != resources[row] || h.Start != starts[row] || h.End != ends[row] {
			t.Errorf("row %d: head and columns differ", row)
		}
		cells, err := b.Cells(nil, row)
		if err != nil || len(cells) != 1 {
			t.Fatalf("row %d: cells %v, %v", row, cells, err)
		}
		c, err := b.Cell(row, 0)
		if err != nil || c != cells[0] {
			t.Errorf("row %d: cell %v, %v", row, c, err)
		}
		sh, r := &tables.Shapes[h.Shape], &tables.Resources[h.Resource]
		if sh.Tenant != r.Tenant || sh.Service != r.Service {
			t.Errorf("row %d: shape of tenant %q, service %q; resource of %q, %q", row, sh.Tenant, sh.Service, r.Tenant, r.Service)
		}
		found[uint32(c.Num)] = span{sh.Tenant, sh.Service, h.TraceID[0], h.Start, uint32(c.Num)}
	}
}

// TestFilter adds rules one by one to filters over a memtable and a segment, and compares the
// visible rows with the expected ones.
func TestFilter(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		s := newStore(t, rnd, 1+rnd.IntN(300))
		var all []*Rule
		filters := map[string]*Filter{}
		for number := range uint64(6) {
			fresh := []*Rule{randomRule(rnd, number+1)}
			all = append(all, fresh...)
			visible, by := s.visible(all)
			for name, src := range map[string]source.Source{"memtable": s.table, "segment": s.file} {
				before := filters[name]
				m := NewFilter(src, fresh, before)
				filters[name] = m
				if rnd.IntN(3) == 0 {
					continue // add the next rule before this filter is evaluated
				}
				what := fmt.Sprintf("seed %d, %s, rule %d", seed, name, number+1)
				check(t, what, s, m, visible)
				for _, r := range all {
					if got := m.HiddenBy(r.Number); got != by[r.Number] {
						t.Errorf("%s: rule %d hides %d rows, want %d", what, r.Number, got, by[r.Number])
					}
				}
				if before != nil && before.result.Load() != nil && m.Redundant() != (by[number+1] == 0) {
					t.Errorf("%s: Redundant is %t, but the rule hides %d rows", what, m.Redundant(), by[number+1])
				}
			}
		}
	}
}

func check(t *testing.T, what string, s *store, m *Filter, visible map[uint32]span) {
	t.Helper()
	if got := read(t, m); !maps.Equal(got, visible) {
		t.Fatalf("%s: %d rows, want %d", what, len(got), len(visible))
	}
	if n, known := m.Hidden(); !known || n != len(s.spans)-len(visible) {
		t.Errorf("%s: %d rows are hidden (known: %t), want %d", what, n, known, len(s.spans)-len(visible))
	}
	if n, _, _ := m.Bounds(); n != len(visible) {
		t.Errorf("%s: Bounds counts %d rows, want %d", what, n, len(visible))
	}
	found, again := map[uint32]span{}, map[uint32]span{}
	for _, tenant := range []string{"", "a"} {
		var ids []otlpdata.TraceID
		for trace := range byte(20) {
			ids = append(ids, otlpdata.TraceID{trace})
			err := m.Trace(t.Context(), tenant, ids[trace], func(b source.Block, list []int32) error {
				for _, row := range list {
					readRows(t, m, b, int(row), found)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		err := m.Traces(t.Context(), tenant, ids, func(b source.Block, which int, list []int32) error {
			for _, row := range list {
				readRows(t, m, b, int(row), again)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !maps.Equal(found, visible) || !maps.Equal(again, visible) {
		t.Errorf("%s: %d rows from Trace, %d from Traces, want %d", what, len(found), len(again), len(visible))
	}
	checkVocabulary(t, what, m, visible)
}

// checkVocabulary checks that only the services of visible rows are shown.
func checkVocabulary(t *testing.T, what string, m *Filter, visible map[uint32]span) {
	t.Helper()
	want := map[rows.Service]bool{}
	for _, sp := range visible {
		want[rows.Service{Tenant: sp.tenant, Name: sp.service}] = true
	}
	tables, err := m.Tables()
	if err != nil {
		t.Fatal(err)
	}
	shapes, resources, listed := map[rows.Service]bool{}, map[rows.Service]bool{}, map[rows.Service]bool{}
	for _, sh := range tables.Shapes {
		if sh.Service != "" {
			shapes[rows.Service{Tenant: sh.Tenant, Name: sh.Service}] = true
		}
	}
	for _, r := range tables.Resources {
		if r.Service != "" {
			resources[rows.Service{Tenant: r.Tenant, Name: r.Service}] = true
		}
	}
	tenants := map[string]bool{}
	for s := range want {
		tenants[s.Tenant] = true
	}
	for tenant := range tenants {
		err := m.EachService(tenant, "", func(name []byte, _ bool) bool {
			of := rows.Service{Tenant: tenant, Name: string(name)}
			err := m.EachOperation(of.Tenant, of.Name, "", func([]byte, string) bool {
				listed[of] = true
				return false
			})
			if err != nil {
				t.Fatal(err)
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !maps.Equal(shapes, want) || !maps.Equal(resources, want) || !maps.Equal(listed, want) {
		t.Errorf("%s: services of shapes %v, of resources %v, of the catalog %v, want %v", what, shapes, resources, listed, want)
	}
	if words, complete := m.Words(0); len(words) > 0 || complete {
		t.Errorf("%s: Words returned %v", what, words)
	}
}

// TestUnreadBlockStaysHidden checks that a block that is unreadable during the evaluation hides its
// rows once it is readable again, and that the result counts as incomplete until then.
func TestUnreadBlockStaysHidden(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s := newStore(t, rnd, 200)
		_, err := s.file.Tables() // load the vocabulary and the list of blocks into memory
		if _, failed := s.file.Blocks(); errors.Join(err, failed) != nil {
			t.Fatal(err, failed)
		}
		ofTrace := &Tombstone{Number: 2, Traces: []otlpdata.TraceID{{s.spans[0].trace}}, Tenant: s.spans[0].tenant}
		rules := []*Rule{randomRule(rnd, 1), NewRule(ofTrace)}
		visible, _ := s.visible(rules)
		m := NewFilter(s.file, rules, nil)
		s.fail.Switch(true)
		if err := m.Evaluate(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, known := m.Hidden()
		if _, err := m.Open(t.Context(), 0); err == nil || known || m.Redundant() {
			t.Errorf("seed %d: disk removed: error %v, known %t", seed, err, known)
		}
		s.fail.Switch(false)
		found := map[uint32]span{}
		infos, err := m.Blocks()
		if err != nil {
			t.Fatal(err)
		}
		for i := range infos {
			b, err := m.Open(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			readRows(t, m, b, -1, found)
			b.Close()
		}
		if !maps.Equal(found, visible) {
			t.Errorf("seed %d: %d rows after the disk is back, want %d", seed, len(found), len(visible))
		}
	}
}

// TestFilterHasNoStatistics checks that the statistics of a segment, which include hidden rows, are
// not used.
func TestFilterHasNoStatistics(t *testing.T) {
	s := newStore(t, rand.New(rand.NewPCG(1, 1)), 10)
	if _, ok := any(NewFilter(s.file, nil, nil)).(source.Statistics); ok {
		t.Error("Filter implements source.Statistics")
	}
}
