package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// searchAnswer is the compared part of the response to a search.
type searchAnswer struct {
	Traces []struct {
		TraceID         string
		RootServiceName string
		RootTraceName   string
		DurationMs      int
		SpanSets        []struct {
			Spans []struct {
				SpanID, DurationNanos string
				Attributes            []attribute
			}
			Matched    int
			Attributes []attribute
		}
	}
}

type attribute struct {
	Key   string
	Value json.RawMessage
}

func (a attribute) String() string { return a.Key + "=" + string(a.Value) }

// seriesAnswer is the compared part of the response to a metrics query.
type seriesAnswer struct {
	Series []struct {
		Labels  []attribute
		Value   float64 // instant
		Samples []struct {
			TimestampMs string
			Value       float64
		}
	}
}

// maxRelativeError is the maximum relative difference of equal numbers: sums of floats depend on
// their order.
const maxRelativeError = 1e-9

// difference returns the first difference of two answers, or "".
func difference(q query, tempo, ours answer) string {
	if tempo.status != ours.status || ours.status == 0 { // 0: no response
		return fmt.Sprintf("status %d, here %d: %.300s | %.300s", tempo.status, ours.status, oneLine(tempo.body), oneLine(ours.body))
	}
	if tempo.status != http.StatusOK || q.kind == "get" {
		return "" // the texts of errors differ, and so do answers with limits
	}
	var facts [2]map[string]string
	for i, a := range []answer{tempo, ours} {
		var err error
		if facts[i], err = factsOf(q, a.body); err != nil {
			return fmt.Sprintf("cannot decode answer %d: %v: %.300s", i, err, oneLine(a.body))
		}
	}
	var only [2]int
	first := ""
	differing := 0
	keys := maps.Clone(facts[0])
	maps.Copy(keys, facts[1])
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		a, inTempo := facts[0][key]
		b, inOurs := facts[1][key]
		switch {
		case !inOurs:
			only[0]++
		case !inTempo:
			only[1]++
		case isSame(a, b):
			continue
		default:
			differing++
		}
		if first == "" {
			first = fmt.Sprintf("%s: %.300s, here %.300s", key, orNone(a, inTempo), orNone(b, inOurs))
		}
	}
	if first == "" {
		return ""
	}
	return fmt.Sprintf("%d only there, %d only here, %d differ of %d and %d; %s",
		only[0], only[1], differing, len(facts[0]), len(facts[1]), first)
}

func orNone(text string, exists bool) string {
	if !exists {
		return "none"
	}
	return text
}

func oneLine(b []byte) string { return strings.Join(strings.Fields(string(b)), " ") }

// isSame reports whether two facts are the same text, or almost the same number.
func isSame(a, b string) bool {
	if a == b {
		return true
	}
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && math.Abs(x-y) <= maxRelativeError*math.Max(math.Abs(x), math.Abs(y))
}

// factsOf returns what an answer says, independent of its order.
func factsOf(q query, body []byte) (map[string]string, error) {
	facts := make(map[string]string)
	switch q.kind {
	case "search":
		return facts, factsOfSearch(facts, q.q, body)
	case "range", "instant":
		return facts, factsOfSeries(facts, body)
	case "tags":
		var a struct {
			Scopes []struct {
				Name string
				Tags []string
			}
		}
		err := json.Unmarshal(body, &a)
		for _, s := range a.Scopes {
			for _, tag := range s.Tags {
				facts[s.Name+" "+tag] = "listed"
			}
		}
		return facts, err
	}
	var a struct {
		TagValues []struct{ Type, Value string }
	}
	err := json.Unmarshal(body, &a)
	for _, v := range a.TagValues {
		facts[v.Value] = v.Type
	}
	return facts, err
}

func factsOfSearch(facts map[string]string, query string, body []byte) error {
	var a searchAnswer
	if err := json.Unmarshal(body, &a); err != nil {
		return err
	}
	for _, t := range a.Traces {
		id := strings.TrimLeft(t.TraceID, "0")
		facts[id] = fmt.Sprintf("%s %s %dms, %d sets", t.RootServiceName, t.RootTraceName, t.DurationMs, len(t.SpanSets))
		for _, set := range t.SpanSets {
			name := id + " " + sorted(set.Attributes)
			facts[name+" matched"] = strconv.Itoa(set.Matched)
			for _, s := range set.Spans {
				fact := s.DurationNanos
				if strings.Contains(query, "select(") { // otherwise, which fields a span has is up to the server
					fact += " " + sorted(s.Attributes)
				}
				facts[name+" span "+s.SpanID] = fact
			}
		}
	}
	return nil
}

func sorted(attributes []attribute) string {
	texts := make([]string, len(attributes))
	for i, a := range attributes {
		texts[i] = a.String()
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

func factsOfSeries(facts map[string]string, body []byte) error {
	var a seriesAnswer
	if err := json.Unmarshal(body, &a); err != nil {
		return err
	}
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	for _, s := range a.Series {
		var labels []string
		for _, l := range s.Labels {
			labels = append(labels, l.String())
		}
		name := strings.Join(labels, " ")
		facts[name] = "series"
		if len(s.Samples) == 0 {
			facts[name+" value"] = number(s.Value)
		}
		for _, p := range s.Samples {
			facts[name+" at "+p.TimestampMs] = number(p.Value)
		}
	}
	return nil
}
