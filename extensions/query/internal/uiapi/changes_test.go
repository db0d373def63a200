package uiapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/querytest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
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

// historyStore is a store that knows when services had attributes.
type historyStore struct {
	querytest.WritableStore
	times []storequery.AttributeTime
}

func (h *historyStore) EachAttribute(
	_ context.Context, _ string, _, _ time.Time, take func(*storequery.AttributeTime) error,
) (bool, tracestore.Reasons, error) {
	for i := range h.times {
		if err := take(&h.times[i]); err != nil {
			return true, nil, err
		}
	}
	return true, nil, nil
}

// Provide implements tracestore.Provider.
func (h *historyStore) Provide(_ context.Context, _ string, want reflect.Type) any {
	if want == reflect.TypeFor[storequery.AttributeHistory]() {
		return h
	}
	return h.WritableStore
}

func newHistoryStore(t *testing.T, td ptrace.Traces) *historyStore {
	t.Helper()
	h := &historyStore{WritableStore: querytest.FilledMemory(t, td)}
	index := make(map[string]int)
	add := func(s tracestore.Span, f tracestore.Field, value string) {
		key := fmt.Sprint(s.Resource.Service, f, value, s.Start/uint64(time.Hour))
		i, ok := index[key]
		if !ok {
			i, index[key] = len(h.times), len(h.times)
			h.times = append(h.times, storequery.AttributeTime{Service: s.Resource.Service, Field: f, Value: value, First: s.Start})
		}
		h.times[i].Spans++
		h.times[i].First, h.times[i].Last = min(h.times[i].First, s.Start), max(h.times[i].Last, s.Start)
	}
	err := tracestore.WalkSpans(otlpdata.FromTraces(td, otlpdata.Meta{}), func(s tracestore.Span) error {
		for _, a := range s.Attributes {
			add(s, tracestore.Field{Place: tracestore.SpanAttribute, Key: strings.Clone(a.Key)}, "")
		}
		for _, a := range s.Resource.Attributes {
			if slices.Contains(storequery.IdentityKeys(), a.Key) {
				add(s, tracestore.Field{Place: tracestore.ResourceAttribute, Key: strings.Clone(a.Key)}, strings.Clone(a.Value.Str()))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Changes are found, at about the time when they happened, and nothing else.
func TestChanges(t *testing.T) {
	t.Run("sample", func(t *testing.T) { checkChanges(t, querytest.FilledMemory(t, changing())) })
	t.Run("history", func(t *testing.T) { checkChanges(t, newHistoryStore(t, changing())) })
}

func checkChanges(t *testing.T, store core.Store) {
	t.Helper()
	h := api(t, store)
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

// All instances are counted if the store knows them, however many there were before.
func TestManyInstances(t *testing.T) {
	td := ptrace.NewTraces()
	hour := querytest.Noon.Add(-time.Hour)
	for h := -23; h <= 0; h++ { // hours with other instances
		instances := 40
		if h == 0 {
			instances = 80
		}
		for _, minute := range []int{0, 59} {
			for i := range instances {
				at := hour.Add(time.Duration(60*h+minute) * time.Minute)
				addRequest(td, at, "shop", "", fmt.Sprintf("shop-%02d-%d", h+23, i))
			}
		}
	}
	h := api(t, newHistoryStore(t, td))
	if got, want := askChanges(t, h, hour, querytest.Noon), "11:00 shop instances 40>80"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A value that the store does not know is no change.
func TestUnknownValues(t *testing.T) {
	td := ptrace.NewTraces()
	for i := range 120 {
		addRequest(td, querytest.Noon.Add(time.Duration(i-119)*time.Minute), "shop", "1.0", "shop-0")
		resource := td.ResourceSpans().At(td.ResourceSpans().Len() - 1).Resource().Attributes()
		if i >= 90 {
			resource.PutBool("service.version", true)
		}
		if i >= 100 {
			resource.PutBool("service.instance.id", true)
		}
	}
	if got := askChanges(t, api(t, newHistoryStore(t, td)), querytest.Noon.Add(-time.Hour), querytest.Noon); got != "" {
		t.Errorf("changes are %q", got)
	}
}
