package clickhouse

import (
	"context"
	"fmt"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// countGroups counts the groups of rows whose spans have at most one value of each field.
func (a *aggregation) countGroups(ctx context.Context, set string) error {
	var all groupRow
	sql := fmt.Sprintf("SELECT sum(n), sum(failed), %s, groupArray(bucket), groupArray(n) FROM ("+
		"SELECT %s AS bucket, count() AS n, countIf(status = 'error') AS failed, sum(toUInt128(duration)) AS time "+
		"FROM %s WHERE %s GROUP BY bucket)",
		saturated("sum(time)"), where.Bucket("duration"), a.table, set)
	if err := a.one(ctx, sql, &all.spans, &all.errors, &all.sum, &all.buckets, &all.counts); err != nil || all.spans == 0 {
		return err
	}
	durations, err := histogramOf(all.sum, all.buckets, all.counts)
	if err != nil {
		return err
	}
	a.groups.AddTotal(&durations, all.errors)
	rest := all.spans
	var g groupRow
	err = a.each(ctx, a.groupStatement(set), g.targets(), func() error {
		rest -= min(g.spans, rest)
		return g.addTo(a.groups)
	})
	a.groups.AddOther(rest)
	return err
}

// groupStatement returns the statement that counts the largest groups.
func (a *aggregation) groupStatement(set string) string {
	var columns [2 * tracestore.MaxGroupFields]string
	for i := range tracestore.MaxGroupFields {
		form, text := "'"+formAbsent+"'", "''"
		if i < len(a.want.Groups.By) {
			form, text = fieldValue(a.want.Groups.By[i])
		}
		columns[2*i], columns[2*i+1] = form, text
	}
	return fmt.Sprintf("SELECT form1, text1, form2, text2, sum(n) AS spans, sum(failed), %s, "+
		"groupArray(bucket), groupArray(n) FROM ("+
		"SELECT %s AS form1, %s AS text1, %s AS form2, %s AS text2, %s AS bucket, count() AS n, countIf(status = 'error') AS failed, "+
		"sum(toUInt128(duration)) AS time FROM %s WHERE %s GROUP BY form1, text1, form2, text2, bucket) "+
		"GROUP BY form1, text1, form2, text2 ORDER BY spans DESC, form1, text1, form2, text2 LIMIT %d",
		saturated("sum(time)"), columns[0], columns[1], columns[2], columns[3], where.Bucket("duration"),
		a.table, set, storequery.MaxGroupsCounted)
}

// groupRow is a row of an answer: the spans of a group.
type groupRow struct {
	forms, texts       [tracestore.MaxGroupFields]string
	spans, errors, sum uint64
	buckets            []uint16
	counts             []uint64
}

func (g *groupRow) targets() []any {
	return []any{&g.forms[0], &g.texts[0], &g.forms[1], &g.texts[1], &g.spans, &g.errors, &g.sum, &g.buckets, &g.counts}
}

func (g *groupRow) addTo(counter *storequery.GroupCounter) (err error) {
	durations, err := histogramOf(g.sum, g.buckets, g.counts)
	if err != nil {
		return err
	}
	var key storequery.GroupKey
	for i := range key {
		if key[i].Text, key[i].Present, err = textOf(g.forms[i], g.texts[i]); err != nil {
			return err
		}
	}
	counter.AddGroup(key, &durations, g.errors)
	return nil
}
