package query_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/test/harness"
)

// outlineAnswer is a part of an outline.
type outlineAnswer struct {
	Data struct {
		Spans   int
		Growing bool
		Names   []string
	}
}

// askOutline asks for an outline that the client has with a tag, or "". It returns the tag of the
// answer.
func askOutline(t *testing.T, url, tag string) (status int, newTag string, o outlineAnswer) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tag != "" {
		req.Header.Set("If-None-Match", tag)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to the end
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal(body, &o); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
	} else if len(body) > 0 {
		t.Errorf("%s: %d %s", url, resp.StatusCode, body)
	}
	return resp.StatusCode, resp.Header.Get("ETag"), o
}

// TestGrowingTrace polls the outline of a trace while its spans arrive one by one, from the process
// with the store and from a query service. Each change is seen, and answers in between have no
// body.
func TestGrowingTrace(t *testing.T) {
	const id = "0102030405060708090a0b0c0d0e0f10"
	s := startSplit(t)
	tags := map[string]string{s.collector.QueryURL(): "", s.query.QueryURL(): ""}
	for spans := 1; spans <= 3; spans++ {
		span := harness.JSONSpan(id, "shop", "step", time.Now(), time.Duration(spans)*time.Millisecond)
		if code, answer := s.collector.PostOTLP("application/json", span); code != http.StatusOK {
			t.Fatalf("sending a span: %d %s", code, answer)
		}
		for base, before := range tags {
			url := base + "/api/ui/v1/outline/" + id
			status, tag, o := askOutline(t, url, before)
			if status != http.StatusOK || tag == "" || tag == before || o.Data.Spans != spans || !o.Data.Growing {
				t.Fatalf("%s after span %d: %d, tag %s, before %s, %+v", base, spans, status, tag, before, o)
			}
			if status, again, _ := askOutline(t, url, tag); status != http.StatusNotModified {
				t.Errorf("%s with the same tag: %d, tag %s", base, status, again)
			}
			tags[base] = tag
		}
	}
	for base, tag := range tags {
		if status, _, o := askOutline(t, base+"/api/ui/v1/outline/"+id+"?since="+tag[3:len(tag)-1], ""); status != http.StatusNotModified {
			t.Errorf("%s since %s: %d, %+v", base, tag, status, o)
		}
	}
}
