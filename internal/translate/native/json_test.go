package native

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/gogo/protobuf/jsonpb"
	"github.com/jaegertracing/jaeger-idl/model/v1"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
)

// singleSpans is a visitor that encodes every span.
type singleSpans struct {
	Spans
	encoded [][]byte
}

func (s *singleSpans) Span(span *otlpdata.Span) error {
	s.encoded = append(s.encoded, s.Append(nil, span))
	return nil
}

// checkJSON compares the JSON of an encoded span with what existing collectors write.
func checkJSON(t testing.TB, encoded []byte) {
	t.Helper()
	var want model.Span
	if err := want.Unmarshal(encoded); err != nil {
		t.Fatal(err)
	}
	var theirs bytes.Buffer
	if err := new(jsonpb.Marshaler).Marshal(&theirs, &want); err != nil {
		t.Logf("existing collectors cannot write the span: %v", err)
		return
	}
	ours := AppendJSON(nil, encoded)
	var a, b any
	if err := json.Unmarshal(ours, &a); err != nil {
		t.Fatalf("%v: %s", err, ours)
	}
	if err := json.Unmarshal(theirs.Bytes(), &b); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("JSON\n%s\nwant\n%s", ours, theirs.Bytes())
	}
}

func TestJSONMatchesExistingCollectors(t *testing.T) {
	for _, c := range outgoingCases() {
		t.Run(c.name, func(t *testing.T) {
			var w singleSpans
			if err := otlpdata.Walk(encoded(t, one(c.build)), &w); err != nil || len(w.encoded) == 0 {
				t.Fatal(len(w.encoded), err)
			}
			for _, s := range w.encoded {
				checkJSON(t, s)
			}
		})
	}
	for r := range bench.New(1, time.Unix(1_700_000_000, 0)).Requests(500, 100) {
		var w singleSpans
		if err := otlpdata.Walk(r.Body, &w); err != nil {
			t.Fatal(err)
		}
		for _, s := range w.encoded {
			checkJSON(t, s)
		}
	}
}
