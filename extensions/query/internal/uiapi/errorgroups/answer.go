package errorgroups

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
)

// answer is the data of GET /api/ui/v1/errors.
type answer struct {
	period
	Before  *period        `json:"before,omitempty"` // the time before
	Omitted int            `json:"omitted"`          // groups omitted because of the limit
	Groups  []*groupAnswer `json:"groups"`           // in the order of `sort`
}

type groupAnswer struct {
	ID              string        `json:"id"` // tracestore.ErrorGroup
	Service         string        `json:"service"`
	Operation       string        `json:"operation"` // the most frequent one; the only one without Pattern and Frame
	Operations      []countedText `json:"operations"`
	OtherOperations uint64        `json:"otherOperations"` // spans of further operations
	Versions        []countedText `json:"versions"`        // values of service.version
	Type            string        `json:"type"`            // see failure.Failure
	Pattern         string        `json:"pattern"`         // the message without its variable parts
	Frame           string        `json:"frame"`           // the top frame, or ""
	Where           string        `json:"where"`           // conditions, as within braces
	Message         string        `json:"message"`
	Count           uint64        `json:"count"`
	Before          *uint64       `json:"before,omitempty"` // spans in the time before
	Days            []uint64      `json:"days,omitempty"`   // spans at the same time of the days before, the latest first
	First           route.Nanos   `json:"first"`
	Last            route.Nanos   `json:"last"`
	Trend           trendAnswer   `json:"trend"`
	Points          []uint64      `json:"points"`
	TraceID         string        `json:"traceID"` // of the newest span, as are Message and SpanID
	SpanID          string        `json:"spanID"`
}

type trendAnswer struct {
	Kind   kind        `json:"kind"`
	Factor float64     `json:"factor,omitempty"` // of growing
	Since  route.Nanos `json:"since,omitempty"`
	Until  route.Nanos `json:"until,omitempty"` // missing: it continues
}

// answerOf returns the response for groups with examples. Groups whose example could not be read
// are also omitted.
func answerOf(now, before *counted, list []*group, omitted int) *answer {
	out := &answer{period: now.period, Omitted: omitted, Groups: []*groupAnswer{}}
	if before != nil {
		out.Before = &before.period
	}
	similar := make(map[similarity]int)
	for _, g := range list {
		if g.example != nil {
			similar[similarityOf(g.example)]++
		}
	}
	for _, g := range list {
		if g.example == nil {
			out.Omitted++
			continue
		}
		one := g.answer(now, similar[similarityOf(g.example)] > 1)
		if before != nil {
			n := uint64(0)
			if g.before != nil {
				n = route.Estimate(g.before.Durations.Count(), before.Share)
			}
			one.Before = &n
		}
		out.Groups = append(out.Groups, one)
	}
	return out
}

func (g *group) answer(now *counted, withFrame bool) *groupAnswer {
	e, count := g.example, g.spans.Durations.Count()
	operations, other := mostFrequent(g.operations, now.Share)
	versions, _ := mostFrequent(g.versions, now.Share)
	points := make([]uint64, parts)
	for i, n := range g.spans.Parts[:min(len(g.spans.Parts), parts)] {
		points[i] = route.Estimate(n, now.Share)
	}
	return &groupAnswer{ID: g.id, Service: e.service, Operation: operations[0].Text, Operations: operations, OtherOperations: other,
		Versions: versions, Type: e.failure.Type, Pattern: e.pattern.String(), Frame: e.frame.String(), Where: e.where(withFrame),
		Message: e.message, Count: route.Estimate(count, now.Share), First: route.Nanos(g.spans.First), Last: route.Nanos(g.spans.Last),
		Days:   g.days,
		Trend:  trendAnswer{g.trend.kind, g.trend.factor, route.Nanos(g.trend.since), route.Nanos(g.trend.until)},
		Points: points, TraceID: hex.EncodeToString(e.traceID[:]), SpanID: hex.EncodeToString(e.spanID[:])}
}

// mostFrequent returns the most frequent texts, and the count of the others. The counts are
// estimates if share is below 1. The list is not nil.
func mostFrequent(list []countedText, share float64) (most []countedText, other uint64) {
	slices.SortFunc(list, func(a, b countedText) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Text, b.Text))
	})
	most = []countedText{}
	for i, c := range list {
		c.Count = route.Estimate(c.Count, share)
		if i < maxListed {
			most = append(most, c)
		} else {
			other += c.Count
		}
	}
	return most, other
}

// similarity holds what groups have in common that differ only in the top frame.
type similarity struct {
	service, kind, pattern string
	ofEvent                bool
}

func similarityOf(e *example) similarity {
	return similarity{e.service, e.failure.Type, e.pattern.String(), e.failure.MessageOfEvent}
}
