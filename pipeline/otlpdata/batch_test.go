package otlpdata

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

func fromOTLP(t testing.TB, b []byte, m Meta) *Batch {
	t.Helper()
	batch, err := FromOTLP(b, m, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return batch
}

func tracesOf(t testing.TB, b *Batch) ptrace.Traces {
	t.Helper()
	td, err := b.Traces()
	if err != nil {
		t.Fatal(err)
	}
	return td
}

func chunksOf(t testing.TB, b *Batch) [][]byte {
	t.Helper()
	chunks, err := b.Chunks()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(chunks)
}

func TestFromOTLPKeepsTheBytes(t *testing.T) {
	data := sample(10)
	m := Meta{Tenant: "t", Format: "otlp", Transport: "grpc", Received: time.Unix(1_700_000_000, 0)}
	b := fromOTLP(t, data, m)
	chunks := chunksOf(t, b)
	if len(chunks) != 1 || unsafe.SliceData(chunks[0]) != unsafe.SliceData(data) {
		t.Error("FromOTLP copied the request")
	}
	if b.Len() != 10 || b.Size() != len(data) || b.Meta() != m {
		t.Errorf("got %d spans, %d bytes, %+v", b.Len(), b.Size(), b.Meta())
	}
	if td := tracesOf(t, b); td != tracesOf(t, b) {
		t.Error("Traces built the objects twice")
	}
}

func TestFromOTLPInvalid(t *testing.T) {
	if b, err := FromOTLP([]byte("garbage"), Meta{}, Limits{}); err == nil || b != nil {
		t.Errorf("got %v, %v", b, err)
	}
}

func TestServices(t *testing.T) {
	root, child := wireSpan(), wireSpan(fieldText(4, "parentid"))
	group := func(resource []byte, spans ...[]byte) []byte {
		var b []byte
		for _, s := range spans {
			b = append(b, fieldLen(2, fieldLen(2, s))...) // each in a scope of its own
		}
		return fieldLen(1, fieldLen(1, resource), b)
	}
	named := func(n string) []byte { return stringAttribute(1, "service.name", n) }
	b := fromOTLP(t, cat(group(named("a"), root, child), group(named("unused")), group(nil, child), group(named(""), child),
		group(attribute(1, "service.name", fieldVarint(3, 1)), root), group(named("a"), root, child, child)), Meta{})
	want := []ServiceCount{{Service: "a", Spans: 5, Roots: 2}, {Service: "missing-service-name", Spans: 1},
		{Service: "empty-service-name", Spans: 1}, {Service: "service-name-wrong-type", Spans: 1, Roots: 1}}
	if !reflect.DeepEqual(b.Services(), want) || b.Len() != 8 {
		t.Errorf("got %d spans %+v, want 8 %+v", b.Len(), b.Services(), want)
	}
}

// TestManyServices has more services than are searched linearly.
func TestManyServices(t *testing.T) {
	var data []byte
	var want []ServiceCount
	for i := range 100 {
		name := fmt.Sprintf("service-%d", i%50)
		data = append(data, fieldLen(1, wireResource(name), fieldLen(2, fieldLen(2, wireSpan())))...)
		if i < 50 {
			want = append(want, ServiceCount{Service: name, Spans: 2, Roots: 2})
		}
	}
	b := fromOTLP(t, data, Meta{})
	if !reflect.DeepEqual(b.Services(), want) {
		t.Errorf("got %+v", b.Services())
	}
	checkCounts(t, FromTraces(tracesOf(t, b), Meta{}), b)
}

func TestServiceNamesDoNotKeepTheRequest(t *testing.T) {
	data := request(wireSpan())
	b := fromOTLP(t, data, Meta{})
	name := unsafe.Pointer(unsafe.StringData(b.Services()[0].Service))
	from := unsafe.Pointer(unsafe.SliceData(data))
	if uintptr(name) >= uintptr(from) && uintptr(name) < uintptr(from)+uintptr(len(data)) {
		t.Error("the service name aliases the request")
	}
}

func TestConcat(t *testing.T) {
	first, second := sample(3), request(wireSpan(), wireSpan(fieldText(4, "parentid")))
	m := Meta{Tenant: "t", Format: "otlp", Transport: "grpc"}
	a := fromOTLP(t, first, m)
	objects := FromTraces(tracesOf(t, fromOTLP(t, sample(2), m)), Meta{Tenant: "t", Format: "zipkin"})
	all, err := Concat(a, fromOTLP(t, second, Meta{Tenant: "t", Transport: "http"}), objects)
	if err != nil {
		t.Fatal(err)
	}
	chunks := chunksOf(t, all)
	if len(chunks) != 3 || unsafe.SliceData(chunks[0]) != unsafe.SliceData(first) || unsafe.SliceData(chunks[1]) != unsafe.SliceData(second) {
		t.Error("chunks were copied, or are out of order")
	}
	if all.Len() != 7 || all.Size() != a.Size()+len(second)+objects.Size() || all.Meta() != m {
		t.Errorf("got %d spans, %d bytes, %+v", all.Len(), all.Size(), all.Meta())
	}
	if want := []ServiceCount{{Service: "cart", Spans: 7, Roots: 1}}; !reflect.DeepEqual(all.Services(), want) {
		t.Errorf("got %+v, want %+v", all.Services(), want)
	}
	joined := cat(chunks...)
	if encoded, err := all.Encoded(); err != nil || !bytes.Equal(encoded, joined) {
		t.Errorf("Encoded returned %d bytes, want %d, error %v", len(encoded), len(joined), err)
	}
	if encoded, err := a.Encoded(); err != nil || unsafe.SliceData(encoded) != unsafe.SliceData(first) {
		t.Errorf("Encoded copied a single chunk, error %v", err)
	}
	checkCounts(t, fromOTLP(t, joined, Meta{}), all)
	diffText(t, "objects", dumpTraces(tracesOf(t, all)), dumpBytes(t, joined))
}

// FromRequests is FromOTLP for each request and Concat, without copies and without memory for each.
func TestFromRequests(t *testing.T) {
	m := Meta{Tenant: "t", Format: "otlp"}
	requests := [][]byte{sample(10), nil, sample(3), sample(7)}
	var parts []*Batch
	for _, r := range requests {
		parts = append(parts, fromOTLP(t, r, m))
	}
	want, err := Concat(parts...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := FromRequests(requests, m, Limits{Spans: 10})
	if err != nil {
		t.Fatal(err)
	}
	if got.Len() != want.Len() || got.Size() != want.Size() || got.Meta() != m || got.WalkMemory() != want.WalkMemory() ||
		!reflect.DeepEqual(got.Services(), want.Services()) || !reflect.DeepEqual(chunksOf(t, got), chunksOf(t, want)) {
		t.Errorf("got %d spans, %d bytes, %+v", got.Len(), got.Size(), got.Services())
	}
	checkTwoForms(t, got)
	if _, err := FromRequests(append(requests, sample(11)), m, Limits{Spans: 10}); err == nil {
		t.Error("the limit of a request was not applied")
	}
	if _, err := FromRequests(append(requests, []byte("garbage")), m, Limits{}); err == nil {
		t.Error("an invalid request was accepted")
	}
	if none, err := FromRequests(nil, m, Limits{}); err != nil || none.Len() != 0 || none.Size() != 0 {
		t.Errorf("no requests: %v, %v", none, err)
	}
	many := slices.Repeat(requests[:1], 1000)
	if n := testing.AllocsPerRun(10, func() {
		if _, err := FromRequests(many, m, Limits{}); err != nil {
			t.Error(err)
		}
	}); n > 20 {
		t.Errorf("%v allocations for %d requests", n, len(many))
	}
}

func TestConcatOfConcats(t *testing.T) {
	one := fromOTLP(t, sample(1), Meta{})
	two, err := Concat(one, one)
	if err != nil {
		t.Fatal(err)
	}
	four, err := Concat(two, two)
	if err != nil {
		t.Fatal(err)
	}
	if len(chunksOf(t, four)) != 4 || len(chunksOf(t, two)) != 2 || four.Len() != 4 || four.Size() != 4*one.Size() {
		t.Errorf("got %d chunks, %d spans, %d bytes", len(chunksOf(t, four)), four.Len(), four.Size())
	}
	if same, err := Concat(four); same != four || err != nil {
		t.Errorf("Concat of one: got %v, %v", same, err)
	}
}

func TestConcatFails(t *testing.T) {
	if _, err := Concat(); err == nil {
		t.Error("no batches: want an error")
	}
	one := fromOTLP(t, sample(1), Meta{Tenant: "one"})
	two := fromOTLP(t, sample(1), Meta{Tenant: "two"})
	if _, err := Concat(one, one, two); err == nil || err.Error() != `otlpdata: Concat of batches of tenants "one" and "two"` {
		t.Errorf("got error %v", err)
	}
}

func TestEdit(t *testing.T) {
	m := Meta{Tenant: "t"}
	encoded := fromOTLP(t, sample(4), m)
	for name, b := range map[string]*Batch{"encoded": encoded, "objects": FromTraces(tracesOf(t, fromOTLP(t, sample(4), m)), m)} {
		t.Run(name, func(t *testing.T) {
			before := dumpTraces(tracesOf(t, b))
			edited, err := b.Edit(func(td ptrace.Traces) error {
				rs := td.ResourceSpans().At(0)
				rs.Resource().Attributes().PutStr("service.name", "shop")
				spans := rs.ScopeSpans().At(0).Spans()
				spans.RemoveIf(func(s ptrace.Span) bool { return s.SpanID()[1] >= 3 })
				spans.At(0).SetParentSpanID([8]byte{})
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			diffText(t, "the original", dumpTraces(tracesOf(t, b)), before)
			if want := []ServiceCount{{Service: "shop", Spans: 3, Roots: 1}}; !reflect.DeepEqual(edited.Services(), want) || edited.Meta() != m {
				t.Errorf("got %+v, %+v, want %+v", edited.Services(), edited.Meta(), want)
			}
			checkCounts(t, fromOTLP(t, chunksOf(t, edited)[0], m), edited)
		})
	}
}

func TestEditFails(t *testing.T) {
	want := errors.New("no")
	b, err := fromOTLP(t, sample(1), Meta{}).Edit(func(ptrace.Traces) error { return want })
	if b != nil || err != want {
		t.Errorf("got %v, %v", b, err)
	}
}

// TestConcurrentUse is for the race detector: everything that a Batch derives, by many goroutines.
func TestConcurrentUse(t *testing.T) {
	one := fromOTLP(t, sample(20), Meta{})
	joined, err := Concat(one, one)
	if err != nil {
		t.Fatal(err)
	}
	objects := FromTraces(tracesOf(t, fromOTLP(t, sample(20), Meta{})), Meta{})
	var wg sync.WaitGroup
	for _, b := range []*Batch{one, joined, objects} {
		for range 4 {
			wg.Go(func() { checkTwoForms(t, b) })
			wg.Go(func() {
				if both, err := Concat(b, one); err != nil || both.Len() != b.Len()+one.Len() {
					t.Errorf("Concat: %v, %v", both, err)
				}
			})
			wg.Go(func() {
				_, err := b.Edit(func(td ptrace.Traces) error {
					td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetName("edited")
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
}

// TestWalk compares the walk of a batch with the walk of its encoded form.
func TestWalk(t *testing.T) {
	objects := FromTraces(tracesOf(t, fromOTLP(t, sample(2), Meta{})), Meta{})
	joined, err := Concat(fromOTLP(t, sample(3), Meta{}), objects, fromOTLP(t, nil, Meta{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []*Batch{objects, joined} {
		var got, want dump
		encoded, err := b.Encoded()
		if err = errors.Join(err, b.Walk(&got), Walk(encoded, &want)); err != nil {
			t.Fatal(err)
		}
		diffText(t, "spans", got.String(), want.String())
		without, err := b.WithoutObjects()
		if err != nil || without.hasDecoded || without.Size() != b.Size() {
			t.Errorf("WithoutObjects: %v, %d bytes, want %d", err, without.Size(), b.Size())
		}
		checkCounts(t, without, b)
	}
	if err := joined.Walk(&stopper{left: 8}); err != errStop {
		t.Errorf("error %v", err)
	}
}

func checkTwoForms(t *testing.T, b *Batch) {
	td, err := b.Traces()
	if err != nil || td.SpanCount() != b.Len() {
		t.Errorf("Traces: %v, %d spans, want %d", err, td.SpanCount(), b.Len())
	}
	chunks, err := b.Chunks()
	size := 0
	for s := range chunks {
		size += len(s)
	}
	if err != nil || size != b.Size() {
		t.Errorf("Chunks: %v, %d bytes, want %d", err, size, b.Size())
	}
}
