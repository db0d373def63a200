package storewire

import (
	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func putGroupQuery(g *tracestore.GroupQuery) *store_v1.GroupQuery {
	out := &store_v1.GroupQuery{Limit: int64(g.Limit), Order: store_v1.GroupOrder(g.Sort), All: g.All}
	for _, f := range g.By {
		out.By = append(out.By, putField(f))
	}
	return out
}

func getGroupQuery(m *store_v1.GroupQuery) (g tracestore.GroupQuery, err error) {
	order := m.GetOrder()
	if order < 0 || order > store_v1.GroupOrder_GROUP_ORDER_TIME {
		return g, invalid("unknown order of groups %d", order)
	}
	g.Limit, g.Sort, g.All = int(m.GetLimit()), tracestore.GroupOrder(order), m.GetAll()
	for _, field := range m.GetBy() {
		f, err := getField(field)
		if err != nil {
			return g, err
		}
		g.By = append(g.By, f)
	}
	return g, nil
}

func putGroups(out *store_v1.AggregateResponse, g *tracestore.Groups) {
	if g == nil {
		return
	}
	out.Groups = &store_v1.Groups{All: putGroup(&g.All), Distinct: int64(g.Distinct), Other: g.Other, Share: g.Share}
	for i := range g.Groups {
		out.Group = append(out.Group, putGroup(&g.Groups[i]))
	}
}

func putGroup(g *tracestore.Group) *store_v1.Group {
	first, counts := g.Durations.Counts()
	out := &store_v1.Group{Errors: g.Errors, Duration: g.Durations.Sum, FirstBucket: uint32(first), Counts: counts}
	for _, v := range g.Values {
		out.Values = append(out.Values, &store_v1.GroupValue{Text: []byte(v.Text), Present: v.Present})
	}
	return out
}

func getGroups(m *store_v1.AggregateResponse) (g *tracestore.Groups, err error) {
	if m.GetGroups() == nil {
		return nil, nil
	}
	g = &tracestore.Groups{Distinct: int(m.Groups.GetDistinct()), Other: m.Groups.GetOther(), Share: m.Groups.GetShare()}
	if g.All, err = getGroup(m.Groups.GetAll()); err != nil {
		return nil, err
	}
	for _, part := range m.GetGroup() {
		one, err := getGroup(part)
		if err != nil {
			return nil, err
		}
		g.Groups = append(g.Groups, one)
	}
	return g, nil
}

func getGroup(m *store_v1.Group) (g tracestore.Group, err error) {
	g.Errors = m.GetErrors()
	if len(m.GetValues()) > len(g.Values) {
		return g, invalid("group has %d values, want at most %d", len(m.GetValues()), len(g.Values))
	}
	for i, v := range m.GetValues() {
		g.Values[i] = tracestore.GroupValue{Text: string(v.GetText()), Present: v.GetPresent()}
	}
	g.Durations, err = tracestore.HistogramOf(m.GetDuration(), int(m.GetFirstBucket()), m.GetCounts())
	if err != nil {
		return g, invalid("%s", err)
	}
	return g, nil
}
