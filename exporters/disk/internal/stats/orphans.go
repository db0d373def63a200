package stats

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Orphan is a span whose parent is not in the segment. Together with the service of the parent it
// forms a call of an edge.
type Orphan struct {
	Tenant, Service string // of the span
	TraceID         otlpdata.TraceID
	ParentID        otlpdata.SpanID
	Minute          uint64
	Duration        uint64 // nanoseconds
	Kind            EdgeKind
	Failed          bool
}

// compareOrphans orders by minute, trace id and parent id. The other fields make the order
// deterministic.
func compareOrphans(a, b orphan) int {
	return cmp.Or(cmp.Compare(a.minute, b.minute), bytes.Compare(a.trace[:], b.trace[:]), bytes.Compare(a.parent[:], b.parent[:]),
		cmp.Compare(a.service, b.service), cmp.Compare(a.duration, b.duration), cmp.Compare(a.kind, b.kind), compareBool(a.failed, b.failed))
}

const (
	flagConsumer   = 1 << 0
	flagFailed     = 1 << 1
	flagSameParent = 1 << 2
	commonShift    = 3
)

// AppendOrphans appends the encoded section of orphans. The Collector may still be used afterwards.
func (c *Collector) AppendOrphans(dst []byte) []byte {
	names, orphans := c.orphanNames()
	slices.SortFunc(orphans, compareOrphans)
	dst = append(dst, version)
	dst = binary.AppendUvarint(dst, c.orphansDropped)
	dst = appendServices(dst, names)
	var w groupWriter
	var before orphan
	for i := range orphans {
		if w.begin(uint64(orphans[i].minute)) {
			before = orphan{}
		}
		w.bodies = appendOrphan(w.bodies, &orphans[i], &before)
		before = orphans[i]
	}
	return w.append(dst)
}

// orphanNames returns the services of orphans, sorted, and a copy of the orphans that refers to
// them.
func (c *Collector) orphanNames() ([]service, []orphan) {
	used := make([]bool, len(c.services))
	for i := range c.orphans {
		used[c.orphans[i].service] = true
	}
	var names []service
	rank := make([]uint32, len(c.services))
	for _, id := range sortedOrder(c.services, (*service).compare) {
		if used[id] {
			rank[id] = uint32(len(names))
			names = append(names, c.services[id])
		}
	}
	orphans := slices.Clone(c.orphans)
	for i := range orphans {
		orphans[i].service = rank[orphans[i].service]
	}
	return names, orphans
}

func (a *service) compare(b *service) int {
	return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.name, b.name))
}

func appendServices(dst []byte, names []service) []byte {
	var all []string
	for _, s := range names {
		all = append(all, s.tenant, s.name)
	}
	t := newTexts(slices.Values(all))
	dst = binary.AppendUvarint(t.append(dst), uint64(len(names)))
	for _, s := range names {
		dst = appendNumbers(dst, t.number[s.tenant], t.number[s.name])
	}
	return dst
}

func appendOrphan(dst []byte, o, before *orphan) []byte {
	common := 0
	for common < len(o.trace) && o.trace[common] == before.trace[common] {
		common++
	}
	flags := byte(o.kind)&flagConsumer | byte(common)<<commonShift
	if o.failed {
		flags |= flagFailed
	}
	same := common == len(o.trace) && o.parent == before.parent
	if same {
		flags |= flagSameParent
	}
	dst = append(append(dst, flags), o.trace[common:]...)
	if !same {
		dst = append(dst, o.parent[:]...)
	}
	return appendNumbers(dst, uint64(o.service)<<orphanBits|uint64(o.kind>>1), o.duration)
}

// OrphanStats is a decoded section of orphans. Immutable and safe for concurrent use.
type OrphanStats struct {
	// Dropped is the number of orphans that are not listed because a limit was reached.
	Dropped  uint64
	services []service
	groups   []group
}

// DecodeOrphans decodes a section of orphans, which it retains. Errors match ErrCorrupt.
func DecodeOrphans(section []byte) (*OrphanStats, error) {
	const minNameSize, minPointSize = 2, 3
	r := reader{b: section}
	s := &OrphanStats{Dropped: r.head()}
	t := r.texts()
	s.services = make([]service, r.names(minNameSize))
	for i := range s.services {
		s.services[i] = service{r.text(t), r.text(t)}
		if i > 0 && s.services[i-1].compare(&s.services[i]) >= 0 {
			r.fail("services out of order")
		}
	}
	s.groups = r.groups(minPointSize)
	var o Orphan
	r.check(s.groups, func(r *reader, first bool) { r.orphan(&o, first, s) })
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// orphan decodes the next point of a body into o, which holds the preceding point.
func (r *reader) orphan(o *Orphan, first bool, s *OrphanStats) {
	if first {
		o.TraceID, o.ParentID = otlpdata.TraceID{}, otlpdata.SpanID{}
	}
	head := r.bytes(1)
	if head == nil {
		return
	}
	common := int(head[0] >> commonShift)
	if common > len(o.TraceID) {
		r.fail("trace id too long")
		return
	}
	o.Failed = head[0]&flagFailed != 0
	copy(o.TraceID[common:], r.bytes(uint64(len(o.TraceID)-common)))
	if head[0]&flagSameParent == 0 {
		copy(o.ParentID[:], r.bytes(uint64(len(o.ParentID))))
	}
	name := r.below(uint64(len(s.services))<<orphanBits, "undefined service")
	o.Kind = EdgeKind(head[0]&flagConsumer) | EdgeKind(name&(1<<orphanBits-1))<<1
	if int(o.Kind.Connection()) >= tracestore.Connections {
		r.fail("undefined connection")
	}
	o.Duration = r.uvarint()
	if r.err == nil {
		of := &s.services[name>>orphanBits]
		o.Tenant, o.Service = of.tenant, of.name
	}
}

// Len returns the number of orphans.
func (s *OrphanStats) Len() int {
	n := 0
	for _, g := range s.groups {
		n += g.points
	}
	return n
}

// Minutes returns the first and last minute with orphans; ok is false if there are none.
func (s *OrphanStats) Minutes() (first, last uint64, ok bool) { return minutes(s.groups) }

// Orphans returns the orphans of the minutes from first to last, both inclusive, ordered by minute,
// trace id and parent id.
func (s *OrphanStats) Orphans(first, last uint64) iter.Seq[Orphan] {
	return func(yield func(Orphan) bool) {
		var o Orphan
		for _, g := range inMinutes(s.groups, first, last) {
			o.Minute = g.minute
			r := reader{b: g.body}
			for i := range g.points {
				if r.orphan(&o, i == 0, s); !yield(o) {
					return
				}
			}
		}
	}
}
