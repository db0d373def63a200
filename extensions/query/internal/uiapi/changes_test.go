package uiapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
)

// addRequest adds a trace of one span of an instance of a service.
func addRequest(td ptrace.Traces, at time.Time, service, version, instance string) ptrace.Span {
	ss := querytest.AddService(td, service)
	resource := td.ResourceSpans().At(td.ResourceSpans().Len() - 1).Resource().Attributes()
	if version != "" {
		resource.PutStr("service.version", version)
	}
	resource.PutStr("host.name", "node")
	resource.PutStr("k8s.pod.name", instance)
	n := td.ResourceSpans().Len()
	return querytest.AddSpan(ss, pcommon.TraceID{14: byte(n >> 8), 15: byte(n)}, 1, 0, "op", at.Sub(querytest.Start))
}

// changing returns spans every 10 s of the two hours before noon, with changes in the second hour:
// at 11:10 shop is updated, at 11:20 its third instance starts, at 11:30 it has a new attribute, at
// 11:40 cart stops one of two instances, and at 11:50 ads begins. Old is as before.
func changing() ptrace.Traces {
	td := ptrace.NewTraces()
	for at := querytest.Start; at.Before(querytest.Noon); at = at.Add(10 * time.Second) {
		minute, n := int(at.Sub(querytest.Noon.Add(-time.Hour))/time.Minute), int(at.Unix()/10)
		after := func(begin int) bool { return at.After(querytest.Noon.Add(-time.Hour)) && minute >= begin }
		version, instances := "1.0", 2
		if after(10) {
			version = "1.1"
		}
		if after(20) {
			instances = 3
		}
		shop := addRequest(td, at, "shop", version, fmt.Sprint("shop-", n%instances))
		shop.Attributes().PutStr("http.method", "GET")
		if after(30) {
			shop.Attributes().PutInt("http.resend_count", 1)
		}
		left := 2
		if after(40) {
			left = 1
		}
		addRequest(td, at, "cart", "", fmt.Sprint("cart-", n%left))
		if after(50) {
			addRequest(td, at, "ads", "7", "ads-0").Attributes().PutStr("only", "x")
		}
		if n%30 == 0 {
			addRequest(td, at, "old", "3", "old-0")
		}
	}
	return td
}

type changesJSON struct {
	Data struct {
		Changes []struct{ At, Service, Kind, From, To string }
	}
}

func askChanges(t *testing.T, h http.Handler, from, to time.Time) string {
	t.Helper()
	var a changesJSON
	w := querytest.Ask(t, h, http.MethodGet, fmt.Sprintf("/api/ui/v1/changes?start=%d&end=%d", from.UnixNano(), to.UnixNano()))
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %v %s", w.Code, err, w.Body)
	}
	var lines []string
	for _, c := range a.Data.Changes {
		var ns int64
		if _, err := fmt.Sscan(c.At, &ns); err != nil {
			t.Fatal(err)
		}
		at := time.Unix(0, ns).UTC().Round(time.Minute).Format("15:04")
		lines = append(lines, fmt.Sprintf("%s %s %s %s>%s", at, c.Service, c.Kind, c.From, c.To))
	}
	return strings.Join(lines, "\n")
}

// Changes are found, at about the time when they happened, and nothing else.
func TestChanges(t *testing.T) {
	h := api(t, querytest.FilledMemory(t, changing()))
	got := askChanges(t, h, querytest.Noon.Add(-time.Hour), querytest.Noon)
	want := strings.Join([]string{
		"11:50 ads service >",
		"11:40 cart instances 2>1",
		"11:30 shop attribute >http.resend_count",
		"11:20 shop instances 2>3",
		"11:10 shop version 1.0>1.1",
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := askChanges(t, h, querytest.Noon.Add(-80*time.Minute), querytest.Noon.Add(-65*time.Minute)); got != "" {
		t.Errorf("changes where nothing changed:\n%s", got)
	}
	if got := askChanges(t, h, querytest.Start, querytest.Start.Add(10*time.Minute)); got != "" {
		t.Errorf("changes without a period before:\n%s", got)
	}
}
