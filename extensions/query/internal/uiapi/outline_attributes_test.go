package uiapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// attributesAt asks for the attributes of trace 1 and decodes the data of the response.
func attributesAt(t *testing.T, h http.Handler, path string, data any) {
	t.Helper()
	w := querytest.Ask(t, h, http.MethodGet, "/api/ui/v1/outline/1/"+path)
	answer := struct{ Data any }{data}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s: %v", path, w.Code, w.Body, err)
	}
}

func TestAttributesOfATrace(t *testing.T) {
	td := ptrace.NewTraces()
	ss := querytest.AddService(td, "web")
	for i := range byte(3) {
		s := querytest.AddSpan(ss, pcommon.TraceID{15: 1}, i+1, i, "op", 0)
		s.Attributes().PutStr("long", strings.Repeat("a", maxTraceValue-1)+"éé")
		for k := range maxTraceKeys {
			s.Attributes().PutInt(fmt.Sprintf("key %d", k), int64(k))
		}
		if i == 1 {
			s.Attributes().PutBool("rare", true)
		}
	}
	h := api(t, querytest.FilledMemory(t, td))
	var keys struct {
		Key   []string
		Spans []int
		More  bool
	}
	attributesAt(t, h, "keys", &keys)
	if len(keys.Key) != maxTraceKeys || len(keys.Spans) != maxTraceKeys || !keys.More ||
		keys.Spans[0] != 3 || keys.Spans[maxTraceKeys-1] != 3 {
		t.Errorf("%d keys, more: %v, %d to %d spans", len(keys.Key), keys.More, keys.Spans[0], keys.Spans[len(keys.Spans)-1])
	}
	var column struct {
		Values []string
		IDs    []byte
		Value  []int
	}
	attributesAt(t, h, "values?key=span.long", &column)
	want := strings.Repeat("a", maxTraceValue-1) + "…"
	if len(column.Values) != 1 || column.Values[0] != want || !utf8.ValidString(column.Values[0]) {
		t.Errorf("values %q", column.Values)
	}
	if len(column.IDs) != 3*8 || len(column.Value) != 3 {
		t.Errorf("%d bytes of ids, values %v", len(column.IDs), column.Value)
	}
	attributesAt(t, h, "values?key=span.rare", &column)
	if len(column.Values) != 1 || column.Values[0] != "true" || len(column.Value) != 1 || column.IDs[7] != 2 {
		t.Errorf("rare: %v of %v", column.Values, column.IDs)
	}
}

// refusing is an account without memory.
type refusing struct{}

var errNoMemory = errors.New("no memory")

func (refusing) HoldMore(int64) error { return errNoMemory }

func TestAttributesReserveMemory(t *testing.T) {
	s := &otlpdata.Span{Attributes: []otlpdata.KeyValue{{Key: "a"}}}
	k := keyCounter{memory: refusing{}, counts: make(map[string]*keyCount)}
	c := attributeColumn{memory: refusing{}, key: "a", index: make(map[string]int32)}
	for _, v := range []otlpdata.Visitor{&k, &c} {
		if err := v.Span(s); !errors.Is(err, errNoMemory) {
			t.Errorf("%T: %v", v, err)
		}
	}
}
