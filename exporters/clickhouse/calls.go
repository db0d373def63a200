package clickhouse

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// callFlags describe calls. The numbers are part of the schema.
type callFlags uint8

const (
	callToPeer    callFlags = 1 << iota // child is a peer
	callToHost                          // the peer is a host, which tracestore.Edges.Peers does not list
	callMessaging                       // see tracestore.Edge
	callInner                           // stays within a service, by the rule of tracestore.Edges
	allCallFlags  = callToPeer | callToHost | callMessaging | callInner
)

// callKey identifies calls that are counted together because no result distinguishes them.
type callKey struct {
	parent, child string
	flags         callFlags
	connection    tracestore.Connection
}

// callSum counts calls. The histogram holds the sum of durations.
type callSum struct {
	callKey
	calls, errors uint64
	durations     tracestore.Histogram
}

// maxPeerSums is the maximum number of sums of calls to peers in a table. It is more than the
// number of edges to peers in a result.
const maxPeerSums = 2 * storequery.MaxPeerEdges

// callTable counts the calls whose spans start within a window. The zero value is ready to use.
type callTable struct {
	index   map[callKey]int
	sums    []callSum
	peers   int  // number of sums of calls to peers
	omitted bool // some calls to peers are not counted
	buckets int  // number of buckets of all histograms
}

// sum returns the sum of the calls with a key, or nil if there would be too many.
func (t *callTable) sum(k callKey) *callSum {
	i, ok := t.index[k]
	if !ok {
		if k.flags&callToPeer != 0 {
			if t.peers >= maxPeerSums {
				t.omitted = true
				return nil
			}
			t.peers++
		}
		if t.index == nil {
			t.index = make(map[callKey]int)
		}
		i = len(t.sums)
		t.index[k] = i
		t.sums = append(t.sums, callSum{callKey: k})
	}
	return &t.sums[i]
}

func (t *callTable) add(k callKey, s *storequery.CallSpan) {
	sum := t.sum(k)
	if sum == nil {
		return
	}
	sum.calls++
	if s.Failed {
		sum.errors++
	}
	_, before := sum.durations.Counts()
	sum.durations.Observe(s.Duration)
	_, after := sum.durations.Counts()
	t.buckets += len(after) - len(before)
}

// addCall adds a call from a service to a service.
func (t *callTable) addCall(parent, child *storequery.CallSpan) {
	k := callKey{parent: parent.Service, child: child.Service,
		connection: tracestore.ConnectionOfCall(connectionOf(parent), connectionOf(child))}
	if parent.Kind == otlpdata.KindProducer || child.Kind == otlpdata.KindConsumer {
		k.flags |= callMessaging
	}
	if tracestore.IsInnerCall(parent.Service, child.Service, child.Kind) {
		k.flags |= callInner
	}
	t.add(k, child)
}

// addPeer adds a call to a peer.
func (t *callTable) addPeer(s *storequery.CallSpan) {
	k := callKey{parent: s.Service, child: s.Peer, flags: callToPeer, connection: connectionOf(s)}
	if s.Kind == otlpdata.KindProducer {
		k.flags |= callMessaging
	}
	if uint8(s.Connection)&rows.PeerIsHost != 0 {
		k.flags |= callToHost
	}
	t.add(k, s)
}

// connectionOf returns the type of connection of a span whose Connection holds the byte Connection
// of the column call; see rows.Call.
func connectionOf(s *storequery.CallSpan) tracestore.Connection {
	return s.Connection &^ rows.PeerIsHost
}

// bytes estimates the memory of the table.
func (t *callTable) bytes() int64 {
	const perSum = 256   // with its key in the index; names are shared
	const perBucket = 16 // counts grow by doubling
	return int64(cap(t.sums))*perSum + int64(t.buckets)*perBucket
}

// ownCopy returns a copy that shares no memory with s, and its size in bytes.
func (s *callSum) ownCopy() (c callSum, bytes int) {
	c = *s
	c.parent, c.child = strings.Clone(s.parent), strings.Clone(s.child)
	c.durations = tracestore.Histogram{}
	c.durations.Add(&s.durations)
	_, counts := c.durations.Counts()
	return c, int(unsafe.Sizeof(c)) + len(c.parent) + len(c.child) + 8*len(counts)
}

// ownCopies returns copies of all sums, and their size in bytes. Above maxResultSize, it stops.
func (t *callTable) ownCopies() (copies []callSum, size int) {
	copies = make([]callSum, 0, len(t.sums))
	for i := range t.sums {
		c, bytes := t.sums[i].ownCopy()
		copies = append(copies, c)
		if size += bytes; size > maxResultSize {
			break
		}
	}
	return copies, size
}

// callWindow counts the calls whose spans start between two times, both inclusive.
type callWindow struct {
	from, to uint64
	table    callTable
}

// callFinder finds the calls of traces whose spans start within windows. It is not safe for
// concurrent use.
type callFinder struct {
	windows []*callWindow // sorted, disjoint
	parents storequery.ParentFinder
	peers   storequery.PeerCallFinder
}

// count adds the calls among the spans of one trace. It sorts the spans.
func (f *callFinder) count(spans []storequery.CallSpan) {
	f.parents.Index(spans)
	f.parents.Each(func(span, parent *storequery.CallSpan) {
		if parent == nil {
			return
		}
		if t := f.at(span.Start); t != nil {
			t.addCall(parent, span)
		}
	})
	f.peers.Each(spans, func(at int) {
		if t := f.at(spans[at].Start); t != nil {
			t.addPeer(&spans[at])
		}
	})
}

// at returns the table of the window that contains a time, or nil.
func (f *callFinder) at(start uint64) *callTable {
	i := sort.Search(len(f.windows), func(i int) bool { return f.windows[i].to >= start })
	if i == len(f.windows) || f.windows[i].from > start {
		return nil
	}
	return &f.windows[i].table
}

// bytes estimates the memory of the tables.
func (f *callFinder) bytes() (n int64) {
	for _, w := range f.windows {
		n += w.table.bytes()
	}
	return n
}

// sorted returns the sums in the order of their keys.
func (t *callTable) sorted() []callSum {
	sums := slices.Clone(t.sums)
	slices.SortFunc(sums, func(a, b callSum) int {
		return cmp.Or(cmp.Compare(a.parent, b.parent), cmp.Compare(a.child, b.child), cmp.Compare(a.flags, b.flags),
			cmp.Compare(a.connection, b.connection))
	})
	return sums
}
