package conformance_test

import (
	encoding "encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/thrift/lib/go/thrift"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// startAllReceivers starts the preset all-in-one with a Zipkin receiver.
func startAllReceivers(t *testing.T, set ...string) *inprocess.Program {
	t.Helper()
	return inprocess.Start(t, append([]string{"receivers::zipkin::endpoint=localhost:0",
		"service::pipelines::traces::receivers=[otlp, native, thriftudp, zipkin]"}, set...)...)
}

// protocol is a protocol of a receiver. send sends one span with the given trace id in which every
// string is text: service, operation, key and value of an attribute, and an event if the format has
// events.
type protocol struct {
	name string
	send sendFunc
}

type (
	sendFunc    func(t *testing.T, p *inprocess.Program, high, low uint64, text string)
	encodeFunc  func(high, low uint64, text string) []byte
	messageFunc func(high, low uint64, text string) (method string, args thrift.TStruct)
)

const wireSpanID = 0x0a0b0c0d01020304

func protocols() []protocol {
	udp := func(listener string, factory thrift.TProtocolFactory, message messageFunc) sendFunc {
		return func(t *testing.T, p *inprocess.Program, high, low uint64, text string) {
			method, args := message(high, low, text)
			sendDatagram(t, p.Addr("thriftudp", listener), thriftMessage(t, factory, method, args))
		}
	}
	post := func(component, listener, path, contentType string, body encodeFunc) sendFunc {
		return func(t *testing.T, p *inprocess.Program, high, low uint64, text string) {
			status, answer := harness.Request(t, http.MethodPost, "http://"+p.Addr(component, listener)+path, string(body(high, low, text)), "Content-Type", contentType)
			if status/100 != 2 {
				t.Errorf("status %d: %s", status, answer)
			}
		}
	}
	call := func(component, method string, body encodeFunc) sendFunc {
		return func(t *testing.T, p *inprocess.Program, high, low uint64, text string) {
			callRaw(t, p.Addr(component, "grpc"), method, body(high, low, text))
		}
	}
	strict, lax := true, false
	compact := thrift.NewTCompactProtocolFactoryConf(nil)
	binaryStrict := thrift.NewTBinaryProtocolFactoryConf(&thrift.TConfiguration{TBinaryStrictWrite: &strict})
	binaryLax := thrift.NewTBinaryProtocolFactoryConf(&thrift.TConfiguration{TBinaryStrictWrite: &lax})
	return []protocol{
		{"compact UDP", udp("compact", compact, emitBatch)},
		{"compact UDP, Zipkin", udp("compact", compact, emitZipkinBatch)},
		{"binary UDP, strict", udp("binary", binaryStrict, emitBatch)},
		{"binary UDP, not strict", udp("binary", binaryLax, emitBatch)},
		{"binary UDP, Zipkin", udp("binary", binaryStrict, emitZipkinBatch)},
		{"Zipkin UDP", udp("zipkin", compact, emitZipkinBatch)},
		{"Zipkin UDP, native", udp("zipkin", compact, emitBatch)},
		{"native HTTP", post("native", "http", "/api/traces", "application/vnd.apache.thrift.binary", func(high, low uint64, text string) []byte {
			return thriftStruct(binaryStrict, nativeBatch(high, low, text))
		})},
		{"native gRPC", call("native", "/jaeger.api_v2.CollectorService/PostSpans", nativeProto)},
		{"native gRPC, neutral name", call("native", "/tracing.api_v2.CollectorService/PostSpans", nativeProto)},
		{"Zipkin v1 JSON", post("zipkin", "http", "/api/v1/spans", "application/json", zipkinV1JSON)},
		{"Zipkin v1 Thrift", post("zipkin", "http", "/api/v1/spans", "application/x-thrift", func(high, low uint64, text string) []byte {
			list := encoding.BigEndian.AppendUint32([]byte{12}, 1) // a list of structs without a message
			return append(list, thriftStruct(binaryStrict, thriftZipkinSpan(high, low, text))...)
		})},
		{"Zipkin v2 JSON", post("zipkin", "http", "/api/v2/spans", "application/json", zipkinV2JSON)},
		{"Zipkin v2 protobuf", post("zipkin", "http", "/api/v2/spans", "application/x-protobuf", zipkinProto)},
		{"OTLP gRPC", call("otlp", "/opentelemetry.proto.collector.trace.v1.TraceService/Export", otlpProto)},
		{"OTLP HTTP", post("otlp", "http", "/v1/traces", "application/x-protobuf", otlpProto)},
		{"OTLP JSON", post("otlp", "http", "/v1/traces", "application/json", otlpJSON)},
	}
}

// TestTextInEveryProtocol checks that valid UTF-8 arrives unchanged in every protocol, and that a
// span with invalid UTF-8 is stored and shown as valid JSON.
func TestTextInEveryProtocol(t *testing.T) {
	for _, c := range []struct{ name, text, operation string }{
		{"unicode", "żółw 🐢 {\"\\}", "żółw 🐢 {\"\\}"},
		{"invalid", "bad \xff\xc3(", otlpdata.InvalidSpanName},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := startAllReceivers(t)
			for i, in := range protocols() {
				t.Run(in.name, func(t *testing.T) {
					high, low := uint64(0x1122334455667788), uint64(i+1)
					in.send(t, p, high, low, c.text)
					s, service := awaitSpan(t, p, fmt.Sprintf("%016x%016x", high, low))
					if s.SpanID != fmt.Sprintf("%016x", wireSpanID) || s.OperationName != c.operation {
						t.Errorf("got span %s %q, want %q", s.SpanID, s.OperationName, c.operation)
					}
					text := strings.ToValidUTF8(c.text, "\ufffd")
					if got := strings.ReplaceAll(service, "\ufffd\ufffd", "\ufffd"); got != text {
						t.Errorf("service %q, want %q", service, text)
					}
					if utf8.ValidString(c.text) && !slices.Contains(harness.TagStrings(s.Tags), c.text+":string="+harness.Quote(c.text)) {
						t.Errorf("tags %s", s.Tags)
					}
					if len(s.Logs) != 1 || len(s.Tags) == 0 {
						t.Errorf("%d logs, tags %s", len(s.Logs), s.Tags)
					}
				})
			}
		})
	}
}

// awaitSpan waits for a trace of one span, because UDP clients get no response, and returns the
// span and its service.
func awaitSpan(t *testing.T, p *inprocess.Program, id string) (harness.UISpan, string) {
	t.Helper()
	var span harness.UISpan
	var service string
	harness.Poll(t, "trace "+id, func() bool {
		status, body := harness.Fetch(t, p.QueryURL()+"/api/traces/"+id)
		if status == http.StatusNotFound {
			return false
		}
		var answer struct{ Data []harness.UITrace }
		if err := json.Unmarshal(body, &answer); err != nil || !utf8.Valid(body) || len(answer.Data) != 1 || len(answer.Data[0].Spans) != 1 {
			t.Fatalf("%d %v: %s", status, err, body)
		}
		span = answer.Data[0].Spans[0]
		service = answer.Data[0].Processes[span.ProcessID].ServiceName
		return true
	})
	return span, service
}

func sendDatagram(t *testing.T, addr string, b []byte) {
	t.Helper()
	conn, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
}

// callRaw calls a method over gRPC with an encoded request.
func callRaw(t *testing.T, addr, method string, body []byte) {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(harness.RawCodec{})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Invoke(t.Context(), method, body, nil); err != nil {
		t.Error(err)
	}
}
