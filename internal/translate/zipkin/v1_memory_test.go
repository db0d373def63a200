package zipkin

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/tracing-backend/tracing/internal/translate/native"
)

// held returns the memory of a translator after its work: what it holds, and the previous memory of
// its largest part, from which that was copied when it grew.
func (t *v1Translator) held() int {
	sizes := []int{
		cap(t.in.annotations) * int(unsafe.Sizeof(t.in.annotations[0])), cap(t.in.tags) * int(unsafe.Sizeof(t.in.tags[0])),
		cap(t.in.hosts) * int(unsafe.Sizeof(t.in.hosts[0])), cap(t.span.Attributes) * int(unsafe.Sizeof(t.span.Attributes[0])),
		cap(t.span.Events) * int(unsafe.Sizeof(t.span.Events[0])), cap(t.fields) * int(unsafe.Sizeof(t.fields[0])),
		cap(t.resource) * int(unsafe.Sizeof(t.resource[0])), cap(t.next) * int(unsafe.Sizeof(t.next[0])),
		cap(t.text), cap(t.json.text), cap(t.out.Bytes()),
	}
	sum := slices.Max(sizes) + len(t.out.Bytes())
	for _, n := range sizes {
		sum += n
	}
	return sum
}

// TestV1Memory: for every kind of content the memory is proportional to the request.
func TestV1Memory(t *testing.T) {
	const n = 4000
	host := &zHost{ServiceName: "a"}
	thrift := map[string][]*zSpan{
		"spans":         slices.Repeat([]*zSpan{{}}, n),
		"annotations":   {noted(slices.Repeat([]*zNote{{Value: "a"}}, n)...)},
		"tags":          {tagged(slices.Repeat([]*zTag{{Key: "a"}}, n)...)},
		"hosts":         {tagged(slices.Repeat([]*zTag{hosted("", &zHost{ServiceName: "a"}), hosted("", &zHost{ServiceName: "b"})}, n)...)},
		"services":      slices.Repeat([]*zSpan{{}, noted(note(0, "cs", host))}, n),
		"bad numbers":   {tagged(slices.Repeat([]*zTag{{Key: "a", AnnotationType: 2}}, n)...)},
		"wrong types":   {tagged(slices.Repeat([]*zTag{{Key: "a", AnnotationType: 7}}, n)...)},
		"long texts":    {tagged(zString("a", strings.Repeat("x", 50*n)), typed("b", 1, strings.Repeat("x", 50*n)))},
		"many mistakes": slices.Repeat([]*zSpan{{ParentID: at(0), Duration: at(-1), Debug: true}}, n),
	}
	for name, spans := range thrift {
		b := encodeList(t, spans)
		tr := v1Translator{spansLeft: 3 * n}
		tr.in.limit = 3 * n
		r := v1ThriftReader{ThriftCursor: native.NewThriftCursor(b, native.Binary), value: tr.httpValue}
		if r.spans(&tr.in, tr.writeV1); r.Err() != nil {
			t.Fatalf("%s: %v", name, r.Err())
		}
		if got, most := tr.held(), V1Growth*len(b)+64<<10; got > most {
			t.Errorf("%s: Thrift of %d bytes took %d", name, len(b), got)
		}
		args := encodeArguments(t, native.Compact, spans)
		if out, err := FromEmitZipkinBatch(args, native.Compact); err != nil || len(out) > EmitZipkinGrowth*len(args) {
			t.Errorf("%s: %d bytes became %d: %v", name, len(args), len(out), err)
		}
	}
	for name, item := range map[string]string{
		"tags": `"binaryAnnotations":[` + strings.Repeat(`{"key":"a"},`, n), "annotations": `"annotations":[` + strings.Repeat(`{"value":1},`, n),
		"hosts":   `"annotations":[` + strings.Repeat(`{"value":1,"endpoint":{"port":1}},{"value":1,"endpoint":{"port":2}},`, n),
		"escapes": `"annotations":[` + strings.Repeat(`{"value":"\n\n\n\n\n\n\n\n"},`, n),
		"nothing": `"annotations":[` + strings.Repeat(`{},`, n),
	} {
		b := []byte(`[{` + v1 + strings.TrimSuffix(item, ",") + `]}]`)
		tr := v1Translator{spansLeft: 1}
		tr.in.limit = 3 * n
		if err := tr.readJSON(b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, most := tr.held(), V1Growth*len(b)+64<<10; got > most {
			t.Errorf("%s: JSON of %d bytes took %d", name, len(b), got)
		}
	}
}

// TestV1AllocatesPerRequest: with a pooled translator, spans need no allocations.
func TestV1AllocatesPerRequest(t *testing.T) {
	spans := slices.Repeat([]*zSpan{benchSpan()}, 100)
	list, args := encodeList(t, spans), encodeArguments(t, native.Compact, spans)
	doc := bytes.Join([][]byte{[]byte("["), bytes.Repeat([]byte(benchJSON+","), 99), []byte(benchJSON + "]")}, nil)
	for name, translate := range map[string]func() ([]byte, error){
		"JSON":   func() ([]byte, error) { return FromV1JSON(doc, Options{}) },
		"Thrift": func() ([]byte, error) { return FromV1Thrift(list, Options{}) },
		"UDP":    func() ([]byte, error) { return FromEmitZipkinBatch(args, native.Compact) },
	} {
		allocs := testing.AllocsPerRun(20, func() {
			if _, err := translate(); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > 60 { // of 100 spans; a garbage collection and the race detector may empty the pool
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}
