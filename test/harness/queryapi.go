package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// Fetch gets a URL and returns status and body of the answer.
func Fetch(t testing.TB, url string) (int, []byte) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, b
}

// The query JSON, as its clients know it.
type (
	UIAnswer struct {
		Data   json.RawMessage
		Total  int
		Errors []struct {
			Code    int
			Msg     string
			TraceID string
		}
	}
	UITrace struct {
		TraceID   string
		Spans     []UISpan
		Processes map[string]UIProcess
		Warnings  []string
	}
	UISpan struct {
		TraceID, SpanID, OperationName, ProcessID string
		References                                []UIReference
		StartTime, Duration                       int64
		Flags                                     uint32
		Tags                                      []UITag
		Logs                                      []UILog
		Warnings                                  []string
	}
	UIReference struct{ RefType, TraceID, SpanID string }
	UILog       struct {
		Timestamp int64
		Fields    []UITag
	}
	UITag struct {
		Key, Type string
		Value     json.RawMessage
	}
	UIProcess struct {
		ServiceName string
		Tags        []UITag
	}
)

// String returns `key:type=value`.
func (t UITag) String() string { return fmt.Sprintf("%s:%s=%s", t.Key, t.Type, t.Value) }

// TagStrings returns tags as sorted text.
func TagStrings(tags []UITag) []string {
	out := make([]string, len(tags))
	for i, t := range tags {
		out[i] = t.String()
	}
	slices.Sort(out)
	return out
}

// Ask gets a path of the query API and decodes data.
func Ask[T any](p *Program, path string) T {
	p.T.Helper()
	status, body := Fetch(p.T, p.QueryURL()+path)
	var a UIAnswer
	if err := json.Unmarshal(body, &a); err != nil || status != http.StatusOK || len(a.Errors) > 0 {
		p.T.Fatalf("GET %s: %d %v %s", path, status, err, body)
	}
	var data T
	if err := json.Unmarshal(a.Data, &data); err != nil {
		p.T.Fatalf("GET %s: %v in %s", path, err, a.Data)
	}
	return data
}

// Search returns the ids of the traces that a search finds, in the order of the answer.
func (p *Program) Search(params ...string) []string {
	p.T.Helper()
	v := url.Values{}
	for i := 0; i+1 < len(params); i += 2 {
		v.Add(params[i], params[i+1])
	}
	ids := []string{}
	for _, tr := range Ask[[]UITrace](p, "/api/traces?"+v.Encode()) {
		ids = append(ids, tr.TraceID)
	}
	return ids
}

// Quote returns a JSON string without HTML escapes.
func Quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
