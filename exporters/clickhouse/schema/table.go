package schema

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/db"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
)

// Table defines a table, and the view that fills it if there is one.
type Table struct {
	Name    string
	Columns []Column
	Indexes []Index
	// Engine is an engine of the MergeTree family with its parameters.
	Engine string
	// OrderBy is the sorting key. Partition is the partition key, or "".
	OrderBy, Partition string
	// Granularity is the number of rows per mark; 0 is the default of the server.
	Granularity int
	// Expires selects the retention. A table that expires has a column `day`.
	Expires Expiry
	// ShardBy is the sharding key.
	ShardBy string
	// Source is the table that the view of this table reads, or "" if there is no view. Select is
	// the query of the view, in which {source} stands for the table.
	Source, Select string
	// SelectVersion is the schema version in which Select last changed; 0 means 1.
	SelectVersion int
}

// Column is a column of a table.
type Column struct {
	Name, Type string
	Codec      string // "" is ZSTD(1)
	Value      string // a clause DEFAULT, MATERIALIZED or ALIAS, or ""
}

// Index is a data skipping index.
type Index struct {
	Name, Expr, Type string
	Granularity      int
}

// Expiry selects a retention time.
type Expiry int

// The retention times.
const (
	Never Expiry = iota
	WithSpans
	WithStatistics
)

const defaultCodec = "ZSTD(1)"

// isAlias reports whether the column is computed when it is read.
func (c *Column) isAlias() bool { return strings.HasPrefix(c.Value, "ALIAS ") }

// name returns the quoted name of a table or view with its database.
func (s *Schema) name(table string) string { return db.Quote(s.opts.Database) + "." + db.Quote(table) }

// onCluster returns the clause that runs a statement on all servers, with a leading space.
func (s *Schema) onCluster() string {
	if s.opts.Shape == Single || s.opts.ReplicatedDatabase {
		return ""
	}
	return " ON CLUSTER " + db.Quote(s.opts.Cluster)
}

func (s *Schema) createDatabase() string {
	if s.opts.ReplicatedDatabase {
		return fmt.Sprintf("CREATE DATABASE IF NOT EXISTS %s ON CLUSTER %s ENGINE = Replicated(%s, '{shard}', '{replica}')",
			db.Quote(s.opts.Database), db.Quote(s.opts.Cluster), where.Text("/clickhouse/databases/"+s.opts.Database))
	}
	return "CREATE DATABASE IF NOT EXISTS " + db.Quote(s.opts.Database) + s.onCluster()
}

// clause returns the definition of a column. stored adds the codec.
func (c *Column) clause(stored bool) string {
	text := db.Quote(c.Name) + " " + c.Type
	if c.Value != "" {
		text += " " + c.Value
	}
	if !stored || c.isAlias() {
		return text
	}
	codec := c.Codec
	if codec == "" {
		codec = defaultCodec
	}
	return text + " CODEC(" + codec + ")"
}

func (i *Index) clause() string {
	return fmt.Sprintf("INDEX %s %s TYPE %s GRANULARITY %d", db.Quote(i.Name), i.Expr, i.Type, i.Granularity)
}

// body returns the parenthesized list of columns and indexes.
func (s *Schema) body(t *Table, stored bool) string {
	var lines []string
	for _, c := range t.Columns {
		lines = append(lines, "    "+c.clause(stored))
	}
	if stored {
		for i := range t.Indexes {
			lines = append(lines, "    "+t.Indexes[i].clause())
		}
	}
	return "\n(\n" + strings.Join(lines, ",\n") + "\n)"
}

func (s *Schema) createTable(t *Table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE IF NOT EXISTS %s%s%s\nENGINE = %s", s.name(s.Local(t.Name)), s.onCluster(), s.body(t, true), s.engine(t))
	if t.Partition != "" {
		b.WriteString("\nPARTITION BY " + t.Partition)
	}
	b.WriteString("\nORDER BY " + t.OrderBy)
	if ttl := s.ttl(t); ttl != "" {
		b.WriteString("\nTTL " + ttl)
	}
	if all := s.settings(t); len(all) > 0 {
		b.WriteString("\nSETTINGS " + joinSettings(all))
	}
	return b.String()
}

// engine returns the engine of a table that stores rows.
func (s *Schema) engine(t *Table) string {
	if s.opts.Shape == Single {
		return t.Engine
	}
	family, params, _ := strings.Cut(strings.TrimSuffix(t.Engine, ")"), "(")
	if s.opts.ReplicatedDatabase {
		if params == "" {
			return "Replicated" + family
		}
		return fmt.Sprintf("Replicated%s(%s)", family, params)
	}
	path := "/clickhouse/tables/{shard}/" + s.opts.Database + "/" + s.Local(t.Name)
	args := []string{where.Text(path), "'{replica}'"}
	if params != "" {
		args = append(args, params)
	}
	return fmt.Sprintf("Replicated%s(%s)", family, strings.Join(args, ", "))
}

// ttl returns the TTL expression of a table, as the server writes it, or "" for none.
func (s *Schema) ttl(t *Table) string {
	keep := map[Expiry]time.Duration{WithSpans: s.opts.Spans, WithStatistics: s.opts.Statistics}[t.Expires]
	n := days(keep)
	if n == 0 {
		return ""
	}
	return "day + toIntervalDay(" + strconv.Itoa(n) + ")"
}

// setting is a setting of a table.
type setting struct {
	name  string
	value int
}

func (s setting) String() string { return fmt.Sprintf("%s = %d", s.name, s.value) }

func joinSettings(all []setting) string {
	var texts []string
	for _, one := range all {
		texts = append(texts, one.String())
	}
	return strings.Join(texts, ", ")
}

// settings returns the settings of a table that stores rows.
func (s *Schema) settings(t *Table) []setting {
	var all []setting
	if t.Granularity > 0 {
		all = append(all, setting{"index_granularity", t.Granularity})
	}
	for _, one := range s.changeable() {
		if one.value != 0 { // which is the default
			all = append(all, one)
		}
	}
	return all
}

// changeable returns the settings that can be changed after a table was created. Their values
// differ from the defaults.
func (s *Schema) changeable() []setting {
	all := []setting{{"ttl_only_drop_parts", 1}, {"materialize_ttl_recalculate_only", 1}}
	if s.opts.Shape == Single {
		all = append(all, setting{"non_replicated_deduplication_window", s.opts.DedupWindow})
	} else {
		all = append(all, setting{"replicated_deduplication_window", s.opts.DedupWindow},
			setting{"replicated_deduplication_window_seconds", dedupSeconds})
	}
	fsync := 0
	if s.opts.Fsync {
		fsync = 1
	}
	return append(all, setting{"fsync_after_insert", fsync}, setting{"fsync_part_directory", fsync})
}

// dedupSeconds is the age of inserts that replicas recognize when they are repeated: a week.
const dedupSeconds = 7 * 24 * 60 * 60

func (s *Schema) createDistributed(t *Table) string {
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s%s%s\nENGINE = Distributed(%s, %s, %s, %s)", s.name(t.Name), s.onCluster(),
		s.body(t, false), where.Text(s.opts.Cluster), where.Text(s.opts.Database), where.Text(s.Local(t.Name)), t.ShardBy)
}

// Delete returns the statement that deletes the rows of a table that a condition selects, on all
// servers, and waits for completion.
func (s *Schema) Delete(table, condition string) string {
	return "DELETE FROM " + s.name(s.Local(table)) + s.onCluster() + " WHERE " + condition +
		" SETTINGS lightweight_deletes_sync = 2, mutations_sync = 2"
}

func (s *Schema) createView(t *Table) string {
	return fmt.Sprintf("CREATE MATERIALIZED VIEW IF NOT EXISTS %s%s TO %s AS\n%s", s.name(t.Name+viewSuffix), s.onCluster(),
		s.name(s.Local(t.Name)), s.viewQuery(t))
}

func (s *Schema) viewQuery(t *Table) string {
	return strings.ReplaceAll(t.Select, "{source}", s.name(s.Local(t.Source)))
}
