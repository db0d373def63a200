package doctor

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/clickhouse"
)

// checkClickHouse makes the checks of `tracing clickhouse schema check` for each exporter.
func checkClickHouse(ctx context.Context, x *examination) []Finding {
	var found []Finding
	for _, c := range x.used {
		if config, ok := c.Value.(*clickhouse.Config); ok {
			found = append(found, checkTables(ctx, key(c), config)...)
		}
	}
	if len(found) == 0 {
		found = append(found, newFinding("", Skipped, "no exporter of the type clickhouse in the configuration"))
	}
	return found
}

func checkTables(ctx context.Context, subject string, config *clickhouse.Config) []Finding {
	const unreachable = "start the server, and correct endpoints, username, password and tls of the exporter"
	tables, err := clickhouse.OpenTables(config)
	if err != nil {
		return []Finding{newFinding(subject, Problem, "%v", err).advise(unreachable)}
	}
	defer tables.Close() //nolint:errcheck // was read only
	differences, err := tables.Check(ctx, tables.Server)
	if err != nil {
		return []Finding{newFinding(subject, Problem, "%v", err).advise(unreachable)}
	}
	var found []Finding
	for _, d := range differences {
		v := Warning
		if d.Problem {
			v = Problem
		}
		found = append(found, newFinding(subject, v, "%s", d.Text))
	}
	if len(found) == 0 {
		found = append(found, newFinding(subject, OK, "tables have version %d and the settings of the server suit", tables.Version))
	}
	return found
}
