package db

import "github.com/ClickHouse/clickhouse-go/v2"

// Dialect adapts statements to servers older than the oldest supported version. Tests use it to run
// on a cluster. The zero value changes nothing.
type Dialect struct {
	// Statement returns a statement as the server understands it.
	Statement func(sql string) string
	// Setting returns the value of a setting, and whether the server has the setting.
	Setting func(name string, value any) (any, bool)
	// Blind reports that the server cannot tell which tables it has.
	Blind bool
}

// statement returns a statement in the dialect.
func (d Dialect) statement(sql string) string {
	if d.Statement == nil {
		return sql
	}
	return d.Statement(sql)
}

// settings returns the settings that the dialect has.
func (d Dialect) settings(all clickhouse.Settings) clickhouse.Settings {
	if d.Setting == nil {
		return all
	}
	known := make(clickhouse.Settings, len(all))
	for name, value := range all {
		if v, ok := d.Setting(name, value); ok {
			known[name] = v
		}
	}
	return known
}
