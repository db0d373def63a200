package query_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tracing-backend/tracing/test/harness"
	"github.com/tracing-backend/tracing/test/harness/inprocess"
)

// apiDocument is docs/openapi.json.
type apiDocument struct {
	Paths map[string]map[string]apiOperation `json:"paths"`
}

type apiOperation struct {
	Parameters []struct {
		Name    string `json:"name"`
		In      string `json:"in"`
		Example any    `json:"example"`
	} `json:"parameters"`
	RequestBody struct {
		Content map[string]struct {
			Example json.RawMessage `json:"example"`
		} `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]json.RawMessage `json:"content"`
	} `json:"responses"`
}

// apiSpans is the trace of the examples in docs/openapi.json, with everything that answers have
// members for.
const apiSpans = `{"resourceSpans": [
  {"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "checkout"}},
    {"key": "service.version", "value": {"stringValue": "1.0"}}]},
   "scopeSpans": [{"scope": {"name": "scope"}, "spans": [
    {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "pay", "kind": 2,
     "startTimeUnixNano": "%[1]d", "endTimeUnixNano": "%[2]d",
     "attributes": [{"key": "http.response.status_code", "value": {"intValue": "200"}}],
     "links": [{"traceId": "00000000000000000000000000000001", "spanId": "0000000000000001"}]},
    {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "0000000000000002", "parentSpanId": "eee19b7ec3c1b174", "name": "SELECT",
     "kind": 3, "startTimeUnixNano": "%[1]d", "endTimeUnixNano": "%[2]d", "status": {"code": 2, "message": "no connection"},
     "attributes": [{"key": "db.system", "value": {"stringValue": "redis"}}],
     "events": [{"timeUnixNano": "%[1]d", "name": "exception",
       "attributes": [{"key": "exception.type", "value": {"stringValue": "Timeout"}}]}]}]}]},
  {"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "mail"}}]},
   "scopeSpans": [{"spans": [
    {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "0000000000000003", "parentSpanId": "eee19b7ec3c1b174", "name": "send",
     "kind": 2, "startTimeUnixNano": "%[1]d", "endTimeUnixNano": "%[2]d"}]}]}]}`

// TestOpenAPIAnswers asks every route of docs/openapi.json with the examples of its parameters, and
// compares the answers with the schemas. Members that a schema does not have are errors.
func TestOpenAPIAnswers(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(harness.Root(t), "docs", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document apiDocument
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	schemas := apiSchemas(t, text)
	p := inprocess.Start(t, "exporters::memory::max_bytes=64MiB", "extensions::query::archive_storage=memory",
		"extensions::query::demo::period=1m", "extensions::query::demo::rate=1")
	routes, answers := 0, 0
	ask := func(path string) {
		for method, operation := range document.Paths[path] {
			routes++
			mediaType, body := askExample(t, p.QueryURL(), path, method, &operation)
			for _, instance := range instances(t, mediaType, body) {
				at := "openapi.json#" + pointer("paths", path, method, "responses", "200", "content", mediaType, "schema")
				schema, err := schemas.Compile(at)
				if err != nil {
					t.Errorf("%s %s: %v", method, path, err)
				} else if err := schema.Validate(instance); err != nil {
					t.Errorf("%s %s: %v\n%s", method, path, err, body)
				} else {
					answers++
				}
			}
		}
	}
	const demo = "/api/ui/v1/demo" // fails unless the store is empty
	ask(demo)
	start := time.Now().Add(-2 * time.Minute)
	spans := fmt.Sprintf(apiSpans, start.UnixNano(), start.Add(time.Second).UnixNano())
	if status, answer := p.PostOTLP("application/json", spans); status != http.StatusOK {
		t.Fatal(status, answer)
	}
	for path := range document.Paths {
		if path != demo {
			ask(path)
		}
	}
	t.Logf("%d routes asked, %d answers valid against their schemas", routes, answers)
}

// apiSchemas returns a compiler for the schemas of the document, which allow no further members.
func apiSchemas(t *testing.T, text []byte) *jsonschema.Compiler {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	closeObjects(document)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("openapi.json", document); err != nil {
		t.Fatal(err)
	}
	return c
}

// closeObjects forbids members that the schema of an object does not have.
func closeObjects(node any) {
	switch node := node.(type) {
	case map[string]any:
		_, isOpen := node["additionalProperties"]
		if node["type"] == "object" && node["properties"] != nil && !isOpen {
			node["additionalProperties"] = false
		}
		for _, child := range node {
			closeObjects(child)
		}
	case []any:
		for _, child := range node {
			closeObjects(child)
		}
	}
}

// pointer returns a JSON pointer as the fragment of a URL.
func pointer(keys ...string) string {
	var b strings.Builder
	for _, key := range keys {
		b.WriteString("/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(key)))
	}
	return b.String()
}

// askExample sends the request of the examples. Event streams are closed when they begin.
func askExample(t *testing.T, server, path, method string, o *apiOperation) (mediaType string, body []byte) {
	t.Helper()
	query := url.Values{}
	for _, p := range o.Parameters {
		values, isList := p.Example.([]any)
		if !isList && p.Example != nil {
			values = []any{p.Example}
		}
		for _, v := range values {
			if p.In == "path" {
				path = strings.ReplaceAll(path, "{"+p.Name+"}", fmt.Sprint(v))
			} else {
				query.Add(p.Name, fmt.Sprint(v))
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	target := server + path + "?" + query.Encode()
	example := bytes.NewReader(o.RequestBody.Content["application/json"].Example)
	r, err := http.NewRequestWithContext(ctx, strings.ToUpper(method), target, example)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	mediaType, _, err = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	content := o.Responses[strconv.Itoa(resp.StatusCode)].Content
	if _, documented := content[mediaType]; err != nil || resp.StatusCode != http.StatusOK || !documented {
		b, _ := io.ReadAll(resp.Body)
		t.Errorf("%s %s: status %d, type %q (%v): %s", method, target, resp.StatusCode, mediaType, err, b)
		return "", nil
	}
	if mediaType == "text/event-stream" {
		return mediaType, nil
	}
	if body, err = io.ReadAll(resp.Body); err != nil {
		t.Errorf("%s %s: %v", method, target, err)
	}
	return mediaType, body
}

// instances returns what a response has to validate: one value, or the values of its lines.
func instances(t *testing.T, mediaType string, body []byte) (values []any) {
	t.Helper()
	texts := [][]byte{body}
	switch mediaType {
	case "", "text/event-stream":
		return nil
	case "text/plain":
		return []any{string(body)}
	case "application/x-ndjson":
		texts = bytes.Split(bytes.TrimSpace(body), []byte("\n"))
	}
	for _, text := range texts {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Errorf("%v: %s", err, text)
			continue
		}
		values = append(values, v)
	}
	return values
}
