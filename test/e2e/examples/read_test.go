package examples_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/test/harness"
)

// fetchTrace reads a trace from the query API.
func fetchTrace(t *testing.T, p *harness.Process, id string) harness.UITrace {
	t.Helper()
	status, body := harness.Fetch(t, p.QueryURL()+"/api/traces/"+id)
	var answer struct{ Data []harness.UITrace }
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK || len(answer.Data) != 1 {
		t.Fatalf("trace %s: status %d, %v: %s", id, status, err, body)
	}
	return answer.Data[0]
}

// describe returns the tags and logs of a span. Of exceptions it leaves out type and stack trace,
// which are different in each language.
func describe(s harness.UISpan) (lines []string) {
	for _, tag := range harness.TagStrings(s.Tags) {
		lines = append(lines, "  "+tag)
	}
	for _, log := range s.Logs {
		fields := slices.DeleteFunc(log.Fields, func(f harness.UITag) bool {
			return f.Key == "exception.type" || f.Key == "exception.stacktrace" || f.Key == "exception.escaped"
		})
		tags := harness.TagStrings(fields)
		if i := slices.IndexFunc(tags, func(tag string) bool { return strings.HasPrefix(tag, "event:") }); i > 0 {
			name := tags[i]
			tags = slices.Insert(slices.Delete(tags, i, i+1), 0, name)
		}
		lines = append(lines, "  log "+strings.Join(tags, " "))
	}
	return lines
}
