package zipkin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openzipkin/zipkin-go/model"
	"github.com/openzipkin/zipkin-go/proto/zipkin_proto3"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// batchOf returns a batch of one resource and scope with these spans.
func batchOf(t testing.TB, resource []otlpdata.KeyValue, spans ...otlpdata.Span) *otlpdata.Batch {
	t.Helper()
	var out otlpdata.Builder
	out.Resource(resource)
	out.Scope("lib", "1.2", []otlpdata.KeyValue{text("scope.attribute", "s")})
	for i := range spans {
		out.Span(&spans[i])
	}
	return parse(t, bytes.Clone(out.Bytes()))
}

func parse(t testing.TB, otlp []byte) *otlpdata.Batch {
	t.Helper()
	b, err := otlpdata.FromOTLP(otlp, otlpdata.Meta{}, otlpdata.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// spanWith returns a client span with attributes.
func spanWith(attributes ...otlpdata.KeyValue) otlpdata.Span {
	return otlpdata.Span{TraceID: otlpdata.TraceID{1, 15: 2}, SpanID: otlpdata.SpanID{7: 3}, Name: "GET /Cart", Kind: otlpdata.KindClient,
		Start: 1_500_000_000_000_001_999, End: 1_500_000_000_000_009_998, Attributes: attributes}
}

func fullSpan() otlpdata.Span {
	s := spanWith(text("a", "1"), intTag("i", -7), otlpdata.KeyValue{Key: "f", Value: otlpdata.DoubleValue(1.5)},
		otlpdata.KeyValue{Key: "b", Value: otlpdata.BoolValue(true)}, text("a", "second"), text("invalid \xff", "\xfe\u2028\"\n"))
	s.ParentID, s.TraceState = otlpdata.SpanID{9}, "k=v"
	s.StatusCode, s.StatusMessage = otlpdata.StatusError, "no more"
	s.DroppedAttributes, s.DroppedEvents, s.DroppedLinks = 1, 2, 3
	s.Events = []otlpdata.Event{{Time: 1_500_000_000_000_002_000, Name: "plain"},
		{Time: 5999, Name: "packed", Attributes: []otlpdata.KeyValue{text("k", "a|b"), intTag("n", 3)}, DroppedAttributes: 4}}
	s.Links = []otlpdata.Link{{TraceID: otlpdata.TraceID{8}, SpanID: otlpdata.SpanID{9}, TraceState: "x=y",
		Attributes: []otlpdata.KeyValue{text("k", "v")}, DroppedAttributes: 5}, {}}
	return s
}

// toRules are examples for the rules of the translation to v2 spans.
func toRules(t *testing.T) []struct {
	name  string
	batch *otlpdata.Batch
} {
	service := []otlpdata.KeyValue{text(serviceName, "cart"), text("host.name", "h1"), text("a", "of the resource")}
	kinds := make([]otlpdata.Span, 7)
	for i := range kinds {
		kinds[i] = spanWith(text("server.address", "db.example"))
		kinds[i].Kind = int32(i)
	}
	status := func(code int32, message string, attributes ...otlpdata.KeyValue) otlpdata.Span {
		s := spanWith(attributes...)
		s.StatusCode, s.StatusMessage = code, message
		return s
	}
	times := func(start, end uint64, attributes ...otlpdata.KeyValue) otlpdata.Span {
		s := spanWith(attributes...)
		s.Start, s.End = start, end
		return s
	}
	short := spanWith()
	short.TraceID = otlpdata.TraceID{8: 1}
	return []struct {
		name  string
		batch *otlpdata.Batch
	}{
		{"no spans", batchOf(t, service)},
		{"everything", batchOf(t, service, fullSpan())},
		{"kinds", batchOf(t, service, kinds...)},
		{"trace id of 64 bits", batchOf(t, service, short)},
		{"no ids", batchOf(t, service, otlpdata.Span{Name: "no trace", SpanID: otlpdata.SpanID{1}}, spanWith(),
			otlpdata.Span{Name: "no span", TraceID: otlpdata.TraceID{1}})},
		{"no service", batchOf(t, []otlpdata.KeyValue{text("host.name", "h1"), intTag(serviceName, 1)}, spanWith())},
		{"service of a function", batchOf(t, []otlpdata.KeyValue{text("faas.name", "f"), text("host.name", "h1")}, spanWith())},
		{"status", batchOf(t, service, status(otlpdata.StatusOK, "", text(tagError, "x")),
			status(otlpdata.StatusUnset, "ignored", text(tagError, "true")),
			status(otlpdata.StatusError, ""), status(otlpdata.StatusError, "m", text(tagError, "timeout")),
			status(otlpdata.StatusError, "", otlpdata.KeyValue{Key: tagError, Value: otlpdata.BoolValue(false)}), status(9, "other"))},
		{"times", batchOf(t, service, times(0, 0), times(0, 5000),
			times(0, 5000, otlpdata.KeyValue{Key: absentStartTime, Value: otlpdata.BoolValue(true)}),
			times(999, 2999), times(5000, 5001), times(5000, 5000), times(5000, 4000), times(1<<64-1, 1<<64-1))},
		{"endpoints", batchOf(t, service,
			spanWith(text("net.host.ip", "10.0.0.1"), intTag("net.host.port", 80), text("peer.service", "db"), text("net.peer.ip", "2001:db8::1"),
				text("net.peer.port", "5432"), text("db.name", "orders")),
			spanWith(text("net.peer.ip", "::ffff:10.0.0.2"), intTag("net.peer.port", 65536)), spanWith(text("net.peer.ip", "fe80::1%eth0")),
			spanWith(text("net.peer.ip", "not one"), intTag("net.peer.port", 80)), spanWith(text("db.name", "orders")))},
		{"debug", batchOf(t, service, spanWith(intTag(otlpdata.FlagsAttribute, int64(otlpdata.FlagDebug))),
			spanWith(intTag(otlpdata.FlagsAttribute, 1)))},
	}
}

// TestToV2 compares the translation of the rules with a golden file. Both formats must mean the
// same for Zipkin's own library.
func TestToV2(t *testing.T) {
	var out strings.Builder
	for _, rule := range toRules(t) {
		body, rejected, err := ToV2JSON(rule.batch, NoServiceName)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "--- %s (%d rejected)\n%s\n", rule.name, rejected, strings.ReplaceAll(string(body), "},{\"traceId", "},\n{\"traceId"))
		checkFormats(t, rule.batch)
	}
	golden.Check(t, filepath.Join("testdata", "to-v2.golden"), []byte(out.String()))
}

// checkFormats translates a batch into both formats, reads them with zipkin-go and compares the
// result.
func checkFormats(t *testing.T, b *otlpdata.Batch) {
	t.Helper()
	body, rejected, err := ToV2JSON(b, NoServiceName)
	if err != nil {
		t.Fatal(err)
	}
	var fromJSON []*model.SpanModel
	if err := json.Unmarshal(body, &fromJSON); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	binary, alsoRejected, err := ToV2Proto(b, NoServiceName)
	if err != nil {
		t.Fatal(err)
	}
	fromProto, err := zipkin_proto3.ParseSpans(binary, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(fromJSON) != b.Len()-rejected || rejected != alsoRejected {
		t.Fatalf("%d of %d spans in JSON, %d and %d rejected", len(fromJSON), b.Len(), rejected, alsoRejected)
	}
	if got, want := modelText(t, fromProto), modelText(t, fromJSON); got != want {
		t.Errorf("from protobuf:\n%s\nfrom JSON:\n%s", got, want)
	}
}

// modelText returns spans as zipkin-go has read them. Its readers of the two formats differ in some
// representations.
func modelText(t *testing.T, spans []*model.SpanModel) string {
	t.Helper()
	var out strings.Builder
	for _, s := range spans {
		if s.Kind == "SPAN_KIND_UNSPECIFIED" {
			s.Kind = ""
		}
		if s.Timestamp.UnixNano() == 0 || s.Timestamp.IsZero() { // absent in protobuf and in JSON
			fmt.Fprint(&out, "no time ")
		} else {
			fmt.Fprint(&out, s.Timestamp.UnixNano(), " ")
		}
		fmt.Fprintf(&out, "%s %s %v %q %s %s %s %s %d", s.TraceID, s.ID, s.ParentID, s.Name, s.Kind, s.Duration, endpointText(s.LocalEndpoint),
			endpointText(s.RemoteEndpoint), len(s.Tags))
		for _, a := range s.Annotations {
			fmt.Fprintf(&out, " %d %q", a.Timestamp.UnixNano(), a.Value)
		}
		fmt.Fprintf(&out, " %q\n", s.Tags)
	}
	return out.String()
}

func endpointText(e *model.Endpoint) string {
	if e.Empty() {
		return "-"
	}
	ip := func(ip net.IP) string { return ip.String() }
	return fmt.Sprintf("%q %s %s %d", e.ServiceName, ip(e.IPv4), ip(e.IPv6), e.Port)
}

// What a Zipkin receiver has read is reread unchanged after it was sent in either format.
func TestRoundTrip(t *testing.T) {
	for _, rule := range rules {
		otlp, err := FromV2JSON([]byte(rule.body), Options{})
		if err != nil {
			continue
		}
		first := parse(t, otlp)
		if want, again := dumpOf(t, first), roundTrip(t, first); again != want && !lossy[rule.name] {
			t.Errorf("%s:\n%s\nbefore:\n%s", rule.name, again, want)
		} else if again == want && lossy[rule.name] {
			t.Errorf("%s: nothing is lost", rule.name)
		}
	}
}

// lossy are the rules whose result Zipkin's format cannot express: spans without a trace id,
// descriptions of a status that is not set, ports without an address as numbers, several attributes
// with one key, and events without a time.
var lossy = map[string]bool{"null spans": true, "ids": true, "status": true, "endpoints": true, "times": true, "tags twice": true,
	"annotations": true, "members twice": true}

// roundTrip returns the spans of a batch after they were sent and received in both formats.
func roundTrip(t *testing.T, b *otlpdata.Batch) string {
	t.Helper()
	var texts []string
	for _, format := range []struct {
		to   func(*otlpdata.Batch, string) ([]byte, int, error)
		from func([]byte, Options) ([]byte, error)
	}{{ToV2JSON, FromV2JSON}, {ToV2Proto, FromV2Proto}} {
		body, _, err := format.to(b, NoServiceName)
		if err != nil {
			t.Fatal(err)
		}
		otlp, err := format.from(body, Options{})
		if err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		texts = append(texts, dumpOf(t, parse(t, otlp)))
	}
	if texts[0] != texts[1] {
		t.Errorf("in JSON:\n%s\nin protobuf:\n%s", texts[0], texts[1])
	}
	return texts[0]
}

func dumpOf(t *testing.T, b *otlpdata.Batch) string {
	t.Helper()
	var d dump
	if err := b.Walk(&d); err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// FuzzToV2 translates arbitrary batches. zipkin-go reads the same from both formats.
func FuzzToV2(f *testing.F) {
	f.Add(encodedBatch(f, fullSpan()))
	f.Add(encodedBatch(f, spanWith(text("net.peer.ip", "1.2.3.4"), text("peer.service", "\xff"))))
	captured, err := os.ReadDir(filepath.Join("testdata", "captured"))
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range captured {
		if body, err := os.ReadFile(filepath.Join("testdata", "captured", c.Name())); err == nil {
			if otlp, err := FromV2JSON(body, Options{}); err == nil {
				f.Add(otlp)
			}
		}
	}
	f.Fuzz(func(t *testing.T, otlp []byte) {
		if b, err := otlpdata.FromOTLP(otlp, otlpdata.Meta{}, otlpdata.Limits{Items: 1000}); err == nil {
			checkFormats(t, b)
		}
	})
}

func encodedBatch(f *testing.F, s otlpdata.Span) []byte {
	encoded, err := batchOf(f, []otlpdata.KeyValue{text(serviceName, "cart")}, s).Encoded()
	if err != nil {
		f.Fatal(err)
	}
	return encoded
}

func BenchmarkToV2(b *testing.B) {
	spans := make([]otlpdata.Span, 100)
	for i := range spans {
		spans[i] = fullSpan()
	}
	batch := batchOf(b, []otlpdata.KeyValue{text(serviceName, "cart"), text("host.name", "h1")}, spans...)
	for name, to := range map[string]func(*otlpdata.Batch, string) ([]byte, int, error){"json": ToV2JSON, "proto": ToV2Proto} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := to(batch, NoServiceName); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/span")
		})
	}
}
