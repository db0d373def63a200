package graph

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// lonely returns a request of spans that are traces of their own. edit completes each span.
func lonely(spans int, edit func(n int, s ptrace.Span)) *otlpdata.Batch {
	td := ptrace.NewTraces()
	list := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for n := range spans {
		s := list.AppendEmpty()
		s.SetTraceID(pcommon.TraceID{byte(n), byte(n >> 8), byte(n >> 16), 1})
		s.SetSpanID(pcommon.SpanID{1})
		s.SetKind(ptrace.SpanKindClient)
		s.SetStartTimestamp(pcommon.NewTimestampFromTime(scantest.Day))
		s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(n))
		edit(n, s)
	}
	return otlpdata.FromTraces(td, otlpdata.Meta{})
}

// TestPeersOfRareKeys checks keys that are encoded in rows because spans have ever new sets of
// keys.
func TestPeersOfRareKeys(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	keys := storequery.PeerKeys()
	sent := lonely(6000, func(_ int, s ptrace.Span) {
		for range rng.IntN(6) {
			switch rng.IntN(3) {
			case 0:
				s.Attributes().PutStr(keys[rng.IntN(len(keys))], fmt.Sprint("peer ", rng.IntN(4)))
			case 1:
				s.Attributes().PutInt(keys[rng.IntN(len(keys))], 1)
			default:
				s.Attributes().PutStr(fmt.Sprint("key ", rng.IntN(100_000)), "")
			}
		}
	})
	live := newRealStore(t, 1, scan.Options{})
	if _, err := live.Tables[0].Append(sent, 0); err != nil {
		t.Fatal(err)
	}
	sealed := newRealStore(t, 1, scan.Options{})
	sealed.SegmentOf(t, sent)
	tables, err := sealed.Segments[0].Tables()
	if err != nil {
		t.Fatal(err)
	}
	encoded := 0
	names := newPeerNames()
	names.enter(sealed.Segments[0], tables)
	for i := range tables.Shapes {
		if names.shape(uint32(i)).Encoded {
			encoded++
		}
	}
	if encoded == 0 {
		t.Error("no key is encoded in rows")
	}
	live.checkPeers(t, time.Time{}, time.Time{}, sent)
	sealed.checkPeers(t, time.Time{}, time.Time{}, sent)
}

// TestTooManyPeers checks that a result with too many peers says so.
func TestTooManyPeers(t *testing.T) {
	const more = 100
	sent := lonely(storequery.MaxPeerEdges+more, func(n int, s ptrace.Span) { s.Attributes().PutStr("peer.service", fmt.Sprint("peer ", n)) })
	s := newRealStore(t, 1, scan.Options{})
	s.SegmentOf(t, sent)
	got, err := s.Peers(t.Context(), "", time.Time{}, time.Time{})
	tooMany := strings.Contains(got.Text(), "too many; narrow the time range")
	if err != nil || got.Complete() || len(got.Edges) != storequery.MaxPeerEdges || !tooMany {
		t.Errorf("got %d edges, reason %q, error %v", len(got.Edges), got.Text(), err)
	}
	want, err := storequery.CountPeers(time.Time{}, time.Time{}, sent)
	if err != nil || want.Complete() || len(want.Edges) != storequery.MaxPeerEdges {
		t.Errorf("definition has %d edges, reason %q, error %v", len(want.Edges), want.Text(), err)
	}
}

// TestUncertainCalls checks that answers are correct if the filter passes everything.
func TestUncertainCalls(t *testing.T) {
	sent := scantest.CutTraces(t, 50, 60, scantest.Day)
	s := newRealStore(t, 1, scan.Options{Decoders: 1})
	s.SegmentOf(t, sent[0])
	s.SegmentOf(t, sent[1])
	if _, err := s.Tables[0].Append(sent[2], 0); err != nil {
		t.Fatal(err)
	}
	want, err := storequery.CountPeers(time.Time{}, time.Time{}, sent...)
	if err != nil {
		t.Fatal(err)
	}
	var sums storequery.PeerCounter
	p := newPeerReader(scan.NewStore(s.View, scan.Options{}).Begin(), "", scan.Range{From: 0, To: math.MaxUint64}, &sums)
	defer p.reader.session.Release()
	p.filter = newParentFilter(0)
	for i := range p.filter.words {
		p.filter.words[i] = math.MaxUint64
	}
	if err := p.scanAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(p.uncertain) == 0 || len(sums.Graph().Edges) > 0 {
		t.Errorf("%d uncertain calls, but counted %+v", len(p.uncertain), sums.Graph())
	}
	if err := p.resolveUncertain(t.Context()); err != nil || !reflect.DeepEqual(sums.Graph(), want) {
		t.Errorf("error %v\n got %+v\nwant %+v", err, sums.Graph(), want)
	}
}

// TestParentFilter checks that the filter matches every added key and has few false positives.
func TestParentFilter(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	key := func() (k parentKey) {
		for i := range k.id {
			k.trace[i], k.id[i] = byte(rng.Uint32()), byte(rng.Uint32())
		}
		return k
	}
	const keys = 100_000
	f := newParentFilter(keys)
	var added []parentKey
	for range keys {
		k := key()
		f.add(k)
		added = append(added, k)
	}
	for _, k := range added {
		if !f.mayHave(k) {
			t.Fatalf("filter lost %v", k)
		}
	}
	wrong := 0
	for range keys {
		if f.mayHave(key()) {
			wrong++
		}
	}
	if wrong > keys/50 {
		t.Errorf("%d of %d other keys pass the filter", wrong, keys)
	}
	if n := len(newParentFilter(math.MaxInt).words); n != maxFilter {
		t.Errorf("%d words, want %d", n, maxFilter)
	}
}
