package native

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
)

// FuzzThrift compares with the generated code: both accept the same batches, and their translations
// follow the rules in expected.
func FuzzThrift(f *testing.F) {
	for _, b := range thriftCases() {
		for _, enc := range encodings {
			f.Add(thriftBytes(f, b, enc), enc == Compact)
		}
	}
	f.Fuzz(checkThrift)
}

func encodingOf(compact bool) Encoding {
	if compact {
		return Compact
	}
	return Binary
}

func checkThrift(t *testing.T, in []byte, compact bool) {
	var tr translator
	r := thriftReader{b: in, compact: compact}
	var got Batch
	tr.thriftBatch(&r, &got)
	checkGrowth(t, len(in), &tr)

	buf := thrift.NewTMemoryBufferLen(len(in))
	buf.Write(in)
	var b jaeger.Batch
	err := b.Read(t.Context(), thriftProtocol(encodingOf(compact), buf))
	if r.err != nil || err != nil {
		if r.err == nil || err == nil && !stricter(r.err) {
			t.Fatalf("got error %v, generated code %v", r.err, err)
		}
		return
	}
	if d := difference(textOf(t, tr.output(), true), expected(asProto(&b))); d != "" {
		t.Fatal(d)
	}
	if got.Client.HasSeqNo != (b.SeqNo != nil) || got.Client.SeqNo != value(b.SeqNo) || got.Client.HasStats != (b.Stats != nil) {
		t.Fatalf("got %+v of %v %v", got.Client, b.SeqNo, b.Stats)
	}
}

// stricter reports whether an error is for input that the library accepts.
func stricter(err error) bool {
	for _, text := range []string{"is repeated in", "not structs", errThriftVarint.Error()} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// FuzzMessage compares the reading of message headers with the library.
func FuzzMessage(f *testing.F) {
	for _, enc := range encodings {
		buf := thrift.NewTMemoryBuffer()
		p := thriftProtocol(enc, buf)
		if err := p.WriteMessageBegin(f.Context(), "emitBatch", thrift.ONEWAY, 77); err != nil {
			f.Fatal(err)
		}
		f.Add(buf.Bytes(), enc == Compact)
	}
	f.Add([]byte("\x00\x00\x00\x01a\x01\x00\x00\x00\x07"), false)
	f.Fuzz(func(t *testing.T, in []byte, compact bool) {
		enc := encodingOf(compact)
		method, args, err := ReadMessage(in, enc)
		buf := thrift.NewTMemoryBufferLen(len(in))
		buf.Write(in)
		want, _, _, wantErr := thriftProtocol(enc, buf).ReadMessageBegin(t.Context())
		switch {
		case err != nil && wantErr == nil && !stricter(err), err == nil && wantErr != nil:
			t.Fatalf("got error %v, library %v", err, wantErr)
		case err == nil && (!strings.HasPrefix(want, method) || !bytes.Equal(args, buf.Bytes())):
			t.Fatalf("got %q, rest %x; library %q, rest %x", method, args, want, buf.Bytes())
		}
	})
}

// FuzzPostSpans compares with the generated code.
func FuzzPostSpans(f *testing.F) {
	for name, b := range thriftCases() {
		if name != "tags" {
			f.Add(protoBytes(f, asProto(b)))
		}
	}
	for _, b := range protoCases() {
		f.Add(protoBytes(f, b))
	}
	f.Fuzz(checkPostSpans)
}

func checkPostSpans(t *testing.T, in []byte) {
	var tr translator
	before := bytes.Clone(in)
	err := tr.postSpans(in, 0)
	if !bytes.Equal(in, before) {
		t.Fatal("FromPostSpans changed its input")
	}
	checkGrowth(t, len(in), &tr)
	var request api_v2.PostSpansRequest
	// The generated code rejects strings that are not UTF-8, which clients send, and accepts ids of
	// any length.
	wantErr := proto.Unmarshal(in, &request)
	invalid := wantErr != nil && strings.Contains(wantErr.Error(), "invalid UTF-8")
	switch {
	case errors.Is(err, errTraceIDLength), errors.Is(err, errSpanIDLength), errors.Is(err, errDense), invalid:
		return
	case (err == nil) != (wantErr == nil):
		t.Fatalf("%x: got error %v, generated code %v", in, err, wantErr)
	case err != nil:
		return
	}
	if d := difference(textOf(t, tr.output(), true), expected(request.GetBatch())); d != "" {
		t.Fatal(d)
	}
}

// Batches with a few changed bytes are read as the generated code reads them.
func TestMutatedBatches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	mutate := func(in []byte) []byte {
		out := bytes.Clone(in)
		for range 1 + r.IntN(4) {
			at := r.IntN(len(out))
			switch r.IntN(4) {
			case 0:
				out[at] = byte(r.Uint32())
			case 1:
				out[at] ^= 1 << r.IntN(8)
			case 2:
				out = slices.Delete(out, at, at+1)
			case 3:
				out = slices.Insert(out, at, out[r.IntN(len(out))])
			}
		}
		return out
	}
	for name, b := range thriftCases() {
		for range 100 {
			checkThrift(t, mutate(thriftBytes(t, b, Compact)), true)
			checkThrift(t, mutate(thriftBytes(t, b, Binary)), false)
			if name != "tags" {
				checkPostSpans(t, mutate(protoBytes(t, asProto(b))))
			}
		}
	}
	for _, b := range protoCases() {
		for range 100 {
			checkPostSpans(t, mutate(protoBytes(t, b)))
		}
	}
}
