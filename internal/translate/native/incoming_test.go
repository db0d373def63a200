package native

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jaegertracing/jaeger-idl/thrift-gen/agent"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"

	"github.com/tracing-backend/tracing/internal/wire/api_v2"
)

var updateIncoming = flag.Bool("update-incoming", false, "rewrite testdata/incoming")

// checkGolden compares the translation of input with a golden file that holds both.
func checkGolden(t *testing.T, name string, input, otlp []byte) {
	t.Helper()
	file := filepath.Join("testdata", "incoming", name+".golden")
	var lines string
	for line := range slices.Chunk(input, 64) {
		lines += hex.EncodeToString(line) + "\n"
	}
	got := lines + textOf(t, otlp, false)
	if *updateIncoming {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwhich differs from %s", got, file)
	}
}

// All wire forms of a batch have the same translation, which follows the rules in expected.
func TestIncomingGolden(t *testing.T) {
	for name, b := range thriftCases() {
		t.Run(name, func(t *testing.T) {
			want := expected(asProto(b))
			for form, enc := range encodings {
				out, err := FromThrift(thriftBytes(t, b, enc), enc)
				if err != nil {
					t.Fatalf("%s: %v", form, err)
				}
				if got := textOf(t, out.OTLP, true); got != want || out.Spans != len(b.Spans) {
					t.Errorf("%s: got %d spans\n%s\nwant %d\n%s", form, out.Spans, got, len(b.Spans), want)
				}
				if enc == Compact {
					checkGolden(t, name, thriftBytes(t, b, enc), out.OTLP)
				}
			}
			if name == "tags" {
				return // the strict encoder rejects invalid UTF-8
			}
			otlp, err := FromPostSpans(protoBytes(t, asProto(b)), 0)
			if err != nil {
				t.Fatalf("protobuf: %v", err)
			}
			if got := textOf(t, otlp, true); got != want {
				t.Errorf("protobuf: got\n%s\nwant\n%s", got, want)
			}
		})
	}
	for name, b := range protoCases() {
		t.Run(name, func(t *testing.T) {
			in := protoBytes(t, b)
			otlp, err := FromPostSpans(in, 0)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := textOf(t, otlp, true), expected(b); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			checkGolden(t, name, in, otlp)
		})
	}
}

func TestReadMessage(t *testing.T) {
	f := func(enc Encoding, in, method, args, failure string) {
		t.Helper()
		b, err := hex.DecodeString(strings.ReplaceAll(in, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		gotMethod, gotArgs, err := ReadMessage(b, enc)
		if failure != "" {
			if err == nil || !strings.Contains(err.Error(), failure) {
				t.Errorf("%s: got error %v, want %s", in, err, failure)
			}
			return
		}
		if err != nil || gotMethod != method || hex.EncodeToString(gotArgs) != args {
			t.Errorf("%s: got %q %x %v, want %q %s", in, gotMethod, gotArgs, err, method, args)
		}
	}
	name := hex.EncodeToString([]byte("emitBatch"))
	f(Compact, "82 81 00 09"+name+"1c00", "emitBatch", "1c00", "")
	f(Compact, "82 21 ffffffff0f 03 616263", "abc", "", "") // a call; the sequence number is ignored
	f(Compact, "67 81 00", "", "", "expected protocol id 82 but got 67")
	f(Compact, "82 82 00", "", "", "expected version 01 but got 02")
	f(Compact, "82", "", "", "truncated")
	f(Compact, "82 81 00 09 00", "", "", "truncated")
	f(Compact, "82 81 ffffffffffffffffffffff", "", "", "overflows")
	f(Binary, "80010004 00000009"+name+"00000001 0c0001", "emitBatch", "0c0001", "")
	f(Binary, "00000009"+name+"04 00000001 0c0001", "emitBatch", "0c0001", "") // not strict
	f(Binary, "00000003 616263 01 00000000", "abc", "", "")
	f(Binary, "80020004 00000009", "", "", "expected version 8001 but got 8002")
	f(Binary, "80010004 ffffffff", "", "", "truncated")
	f(Binary, "80010004 00000001 61 000000", "", "", "truncated")
	f(Binary, "7fffffff 61", "", "", "truncated")
	f(Binary, "8001", "", "", "truncated")
	f(Binary, "", "", "", "truncated")
}

func TestFromEmitBatch(t *testing.T) {
	b := thriftBatch("svc", thriftSpan())
	b.Process.Tags = []*jaeger.Tag{str("client-uuid", "c1")}
	b.SeqNo, b.Stats = new(int64(7)), &jaeger.ClientStats{FullQueueDroppedSpans: 1, TooLargeDroppedSpans: 2, FailedToEmitSpans: 3}
	for form, enc := range encodings {
		args := append(thriftBytes(t, &agent.AgentEmitBatchArgs{Batch: b}, enc), "what follows"...)
		got, err := FromEmitBatch(args, enc)
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		want := ClientStats{ID: "c1", SeqNo: 7, HasSeqNo: true, HasStats: true, FullQueue: 1, TooLarge: 2, FailedToEmit: 3}
		clear(args) // the translation must be a copy
		if got.Client != want || textOf(t, got.OTLP, true) != expected(asProto(b)) {
			t.Errorf("%s: got %+v %s", form, got.Client, textOf(t, got.OTLP, true))
		}
	}
}

// compactSpan is a span in the compact protocol: ids, name and times in this order, each in a byte
// or two.
const compactSpan = "1602 1600 1602 1600 1801 61 2500 1602 1602"

func TestThriftByHand(t *testing.T) {
	f := func(want, in string) {
		t.Helper()
		b, err := hex.DecodeString(strings.ReplaceAll(in, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		out, err := FromThrift(b, Compact)
		if err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(out.Spans, " spans ", strings.Contains(textOf(t, out.OTLP, true), `"service.name" string "svc"`))
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	const process = "1803 737663 00"
	f("1 spans true", "1c"+process+"191c"+compactSpan+"00 00")
	f("1 spans true", "291c"+compactSpan+"00 0c 02"+process+"00") // the process follows its spans
	f("required field process is not set in Batch", "291c"+compactSpan+"00 00")
	f("required field spans is not set in Batch", "1c"+process+"00")
	f("required field serviceName is not set in Process", "1c 00 190c 00")
	f("required field traceIdLow is not set in Span", "1c"+process+"191c 00 00")
	f("required field duration is not set in Span", "1c"+process+"191c"+strings.TrimSuffix(compactSpan, " 1602")+"00 00")
	f("required field key is not set in Tag", "1c 1803 737663 191c 00 00 190c 00")
	f("required field tooLargeDroppedSpans is not set in ClientStats", "1c"+process+"190c 2c 1600 00 00")
	f("field process is repeated in Batch", "1c"+process+"0c 02"+process+"190c 00")
	f("field spans is repeated in Batch", "1c"+process+"190c 0904 0c 00")
	f("list has elements of type 10, not structs", "1c"+process+"1916 02 00")
	f("truncated", "1c"+process+"19fc ffffffff07 00")                   // 2^31-1 spans
	f("truncated", "1c 18 ffffffff07 00")                               // a name of 2^31-1 bytes
	f("truncated", "1c"+process+"191c"+compactSpan+"00")                // no end
	f("unknown type", "1c"+process+"190c 1f 00")                        // of a field
	f("1 spans true", "1c"+process+"191c"+compactSpan+"11 12 f1 00 00") // unknown booleans
	f("1 spans true", "1c"+process+"f8 02 6162 f9 31 01 02 01 fb 01 58 02 01 61 fb 00 fc 1600 00 0904 1c"+compactSpan+"00 00")
	f("nested too deeply", "1c"+process+"190c 1"+strings.Repeat("c 1", 64)+"6 00"+strings.Repeat("00", 70))
}

func TestProtoByHand(t *testing.T) {
	f := func(want, in string) {
		t.Helper()
		otlp, err := FromPostSpans(unhex(t, in), 0)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = strings.Join(strings.Fields(textOf(t, otlp, false)), " ")
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	const ids = "0a08 0000000000000001 1208 0000000000000002"
	f("trace=00000000000000000000000000000001 id=0000000000000002 parent=0000000000000000", "0a16 0a14"+ids)
	f("invalid length for TraceID", "0a05 0a03 0a01 01")
	f("invalid length for TraceID", "0a04 0a02 0a00")
	f("invalid length for SpanID", "0a05 0a03 1201 01")
	f("invalid length for SpanID", "0a07 0a05 2203 1201 01") // of a reference
	// Repeated messages are merged: requests, batches, processes, times.
	f(`"service.name" string "b" "x" string "" "y" string ""`,
		"0a0a 1208 0a0161 1203 0a0178"+"0a0a 1208 0a0162 1203 0a0179"+"0a02 0a00")
	f("start=2000000003 end=2000000003", "0a0a 0a08 3202 0802 3202 1003")
	f(`"service.name" string "ab"`, "0a0a 0a08 5200 5204 0a026162")
	f(`resource "service.name" string "a" scope "" "" span`, "0a07 0a00 1203 0a0161") // the process comes last
	f(`event 1000000000 "e" "k" string ""`, "0a1b 0a19 4a17 0a02 0801 1203 0a016b 120c 0a05 6576656e74 1a01 65 2000")
	f("start=0 end=0", "0a06 0a04 3002 2a00")           // known fields of another type
	f("start=0 end=0", "0a0a 0a08 a306 0801 a406 0801") // groups
	f("invalid field number", "8080808010 00")
	f("unexpected EOF", "0a05 0a05 00")
	f("unexpected EOF", "0a02 0a7f")
	f("unexpected EOF", "0a03 0affffffffff0f")
	f("unexpected EOF", "0a04 1202 0a05") // a process without spans
	f("unexpected EOF", "0a02 0a01 04")
}

// Large repeated messages are merged in new memory, not in the input.
func TestLargeRepeatedProcess(t *testing.T) {
	tag := func(c string) []byte { return inProto(inProto([]byte(strings.Repeat(c, 20_000)), 1), 2) }
	in := inProto(slices.Concat(inProto(tag("a"), 2), inProto(nil, 1), inProto(tag("b"), 2)), 1)
	before := bytes.Clone(in)
	otlp, err := FromPostSpans(in, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := textOf(t, otlp, true); !strings.Contains(got, "aaa\" string") || !strings.Contains(got, "bbb\" string") {
		t.Errorf("got %.100s", got)
	}
	if !bytes.Equal(in, before) {
		t.Error("FromPostSpans changed its input")
	}
}

// If spans that inherit a large process alternate with others, the process is not repeated for each
// of them: the order of spans changes.
func TestSpansOfAlternatingProcesses(t *testing.T) {
	b := &api_v2.Batch{Process: &api_v2.Process{ServiceName: strings.Repeat("long", 1000)}}
	for i := range 100 {
		s := protoSpan()
		if s.OperationName = fmt.Sprint(i); i%2 == 1 {
			s.Process = &api_v2.Process{ServiceName: "own"}
		}
		b.Spans = append(b.Spans, s)
	}
	otlp, err := FromPostSpans(protoBytes(t, b), 0)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(b.Spans, func(x, y *api_v2.Span) int {
		return len(x.GetProcess().GetServiceName()) - len(y.GetProcess().GetServiceName())
	})
	if d := difference(textOf(t, otlp, true), expected(b)); d != "" {
		t.Error(d)
	}
	if n := strings.Count(textOf(t, otlp, false), "resource\n"); n != 2 {
		t.Errorf("%d resources, want 2", n)
	}
}

// Translating a batch to OTLP, back and to OTLP again gives the same OTLP.
func TestIncomingRoundTrip(t *testing.T) {
	for name, b := range thriftCases() {
		if name == "tags" || name == "times" || name == "references" {
			continue // not reversible: invalid UTF-8, durations of centuries, references of unknown types
		}
		in, err := FromThrift(thriftBytes(t, b, Compact), Compact)
		if err != nil {
			t.Fatal(err)
		}
		again, err := FromPostSpans(outgoing(t, in.OTLP), 0)
		if err != nil {
			t.Fatal(err)
		}
		if d := difference(textOf(t, again, true), textOf(t, in.OTLP, true)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestNoAllocationPerSpan(t *testing.T) {
	spans := make([]*jaeger.Span, 1000)
	for i := range spans {
		spans[i] = with(thriftSpan(str("a", "b"), long("c", 1)), func(s *jaeger.Span) {
			s.Logs = []*jaeger.Log{{Timestamp: 1, Fields: []*jaeger.Tag{str("event", "e"), str("f", "g")}}}
			s.References = []*jaeger.SpanRef{{RefType: 1, TraceIdLow: 1}}
		})
	}
	compact, post := thriftBytes(t, thriftBatch("svc", spans...), Compact), protoBytes(t, asProto(thriftBatch("svc", spans...)))
	thrift := testing.AllocsPerRun(100, func() { _, _ = FromThrift(compact, Compact) })
	proto := testing.AllocsPerRun(100, func() { _, _ = FromPostSpans(post, 0) })
	if thrift > 20 || proto > 20 {
		t.Errorf("%v and %v allocations for 1000 spans", thrift, proto)
	}
}
