package zipkin

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pb "github.com/openzipkin/zipkin-go/proto/zipkin_proto3"
	"google.golang.org/protobuf/proto"
)

// jsonSpan is a v2 span for encoding/json.
type jsonSpan struct {
	TraceID, ID, ParentID, Kind, Name string
	Timestamp, Duration               uint64
	LocalEndpoint, RemoteEndpoint     *jsonEndpoint
	Annotations                       []*pb.Annotation
	Tags                              map[string]string
	Debug, Shared                     bool
}

type jsonEndpoint struct {
	ServiceName, IPv4, IPv6 string
	Port                    int32
}

func (e *jsonEndpoint) proto() *pb.Endpoint {
	if e == nil {
		return nil
	}
	p := &pb.Endpoint{ServiceName: e.ServiceName, Port: e.Port}
	if a, err := netip.ParseAddr(e.IPv4); err == nil {
		p.Ipv4 = a.AsSlice()
	}
	if a, err := netip.ParseAddr(e.IPv6); err == nil {
		p.Ipv6 = a.AsSlice()
	}
	return p
}

func idBytes(t testing.TB, s string, size int) []byte {
	if s == "" {
		return nil
	}
	b, err := hex.DecodeString(strings.Repeat("0", max(2*size-len(s), 0)) + s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// toProto converts the spans of a JSON document to protobuf.
func toProto(t testing.TB, doc []byte) []byte {
	var spans []jsonSpan
	if err := json.Unmarshal(doc, &spans); err != nil {
		t.Fatal(err)
	}
	list := &pb.ListOfSpans{}
	for _, s := range spans {
		list.Spans = append(list.Spans, &pb.Span{
			TraceId: idBytes(t, s.TraceID, 8), Id: idBytes(t, s.ID, 8), ParentId: idBytes(t, s.ParentID, 8), Name: s.Name,
			Kind: pb.Span_Kind(pb.Span_Kind_value[s.Kind]), Timestamp: s.Timestamp, Duration: s.Duration, LocalEndpoint: s.LocalEndpoint.proto(),
			RemoteEndpoint: s.RemoteEndpoint.proto(), Annotations: s.Annotations, Tags: s.Tags, Debug: s.Debug, Shared: s.Shared,
		})
	}
	return marshal(t, list)
}

func marshal(t testing.TB, list *pb.ListOfSpans) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sorted sorts the attributes in a dump, because the order of tags is lost in a map.
func sorted(dump string) string {
	lines := strings.Split(dump, "\n")
	for from := 0; from < len(lines); {
		to := from + 1
		for isAttribute(lines[from]) && to < len(lines) && isAttribute(lines[to]) {
			to++
		}
		slices.Sort(lines[from:to])
		from = to
	}
	return strings.Join(lines, "\n")
}

func isAttribute(line string) bool {
	return strings.HasPrefix(line, "      ") && !strings.HasPrefix(line, "      event ") && !strings.HasPrefix(line, "      link ")
}

// Recorded JSON and the same spans in protobuf have equal translations.
func TestV2ProtoIsLikeJSON(t *testing.T) {
	files, err := filepath.Glob("testdata/captured/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	docs := [][]byte{[]byte(`[{"traceId":"463ac35c9f6413ad48485a3953bb6124","id":"b2","parentId":"b2","kind":"PRODUCER","timestamp":1,"debug":true,
		"localEndpoint":{"serviceName":"s","ipv6":"2001:db8::1","port":8080},"remoteEndpoint":{"ipv4":"1.2.3.4","ipv6":"::ffff:1.2.3.5"},
		"tags":{"error":"x","host.name":"h","otel.scope.name":"l","otlp.link.0":"a|b||{\"k\":[1]}|0"},
		"annotations":[{"timestamp":5,"value":"n|{\"a\":1}|2"},{"timestamp":6,"value":"plain"}]}]`)}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, b)
	}
	for _, doc := range docs {
		want := sorted(dumped(FromV2JSON(doc, Options{})))
		if got := sorted(dumped(FromV2Proto(toProto(t, doc), Options{}))); got != want {
			t.Errorf("from protobuf:\n%s\nfrom JSON:\n%s", got, want)
		}
	}
}

func TestV2ProtoErrors(t *testing.T) {
	for name, c := range map[string]struct {
		span *pb.Span
		want string
	}{
		"no id":        {&pb.Span{TraceId: make([]byte, 8)}, "valid span id required"},
		"zero id":      {&pb.Span{Id: make([]byte, 8)}, "valid span id required"},
		"short id":     {&pb.Span{Id: []byte{1}}, "id has 1 bytes, want 8"},
		"odd trace id": {&pb.Span{Id: []byte{8: 0}, TraceId: []byte{1}}, "trace id has 1 bytes, want 16"},
		"long parent":  {&pb.Span{ParentId: make([]byte, 16)}, "parent id has 16 bytes, want 8"},
	} {
		_, err := FromV2Proto(marshal(t, &pb.ListOfSpans{Spans: []*pb.Span{c.span}}), Options{})
		if errText(err) != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	for _, b := range []string{"\x0a", "\x0a\x05a", "\xff", "\x0a\x02\x1a\x09", "\x0a\x02\x42\x05", "\x0b"} {
		if _, err := FromV2Proto([]byte(b), Options{}); err == nil || !strings.Contains(err.Error(), "protobuf") {
			t.Errorf("%q: got %v", b, err)
		}
	}
}

// Addresses of other lengths and unknown fields are ignored.
func TestV2ProtoOddities(t *testing.T) {
	list := marshal(t, &pb.ListOfSpans{Spans: []*pb.Span{{Id: []byte{7: 1}, Kind: 99, Timestamp: 1<<64 - 1, Duration: 1<<64 - 1,
		LocalEndpoint: &pb.Endpoint{Ipv4: []byte{1}, Port: -1}, RemoteEndpoint: &pb.Endpoint{Ipv6: make([]byte, 16)}}}})
	list = binary.AppendUvarint(list, 9<<3)
	list = append(list, 1)
	want := `resource
  scope "" ""
    span 0000000000000000 0000000000000001 ""  9223372036854775000..9223372036854775807
      net.peer.ip="::"
`
	if got := dumped(FromV2Proto(list, Options{})); got != want {
		t.Errorf("got %s", got)
	}
}

// Input is accepted exactly when the generated code accepts it, except that text need not be UTF-8,
// and encoding it again with the generated code does not change its translation.
func FuzzV2Proto(f *testing.F) {
	f.Add([]byte{})
	f.Add(toProto(f, []byte(`[{"traceId":"1","id":"2","name":"n","kind":"CLIENT","tags":{"a":"b","error":""},"annotations":[{"timestamp":1,"value":"a|{}|1"}]}]`)))
	f.Add(toProto(f, []byte(`[{"traceId":"1","id":"2","localEndpoint":{"serviceName":"a","ipv4":"1.2.3.4","port":1},"debug":true}]`)))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := FromV2Proto(b, Options{})
		if err == nil && strings.HasPrefix(dumped(got, nil), "no request") {
			t.Fatal(dumped(got, nil))
		}
		var list pb.ListOfSpans
		if perr := proto.Unmarshal(b, &list); perr != nil {
			if err == nil && !strings.Contains(perr.Error(), "UTF-8") {
				t.Fatalf("%q: accepted, but the generated code: %v", b, perr)
			}
			return
		}
		again, aerr := FromV2Proto(marshal(t, &list), Options{})
		if (err == nil) != (aerr == nil) {
			t.Fatalf("%q: %v, encoded again %v", b, err, aerr)
		}
		if err == nil && len(again) == len(got) && sorted(dumped(got, nil)) != sorted(dumped(again, nil)) {
			t.Fatalf("%q:\n%s\nencoded again:\n%s", b, dumped(got, nil), dumped(again, nil))
		}
	})
}

// Every input is an error or becomes valid OTLP.
func FuzzV2JSON(f *testing.F) {
	for _, r := range rules {
		f.Add([]byte(r.body), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, parse bool) {
		got, err := FromV2JSON(b, Options{ParseStringTags: parse})
		if err == nil && !json.Valid(b) {
			t.Fatalf("%q: accepted, but not JSON", b)
		}
		if err == nil && strings.HasPrefix(dumped(got, nil), "no request") {
			t.Fatal(dumped(got, nil))
		}
	})
}
