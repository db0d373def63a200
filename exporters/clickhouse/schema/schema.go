// Package schema defines the tables of the `clickhouse` exporter and creates them on a server or on
// a cluster.
//
// Each table is defined once, in a function that returns a [Table]; see the files spans.go,
// payload.go, derived.go and state.go. A [Schema] renders the statements for one of three shapes:
// one server, replicas, or shards of replicas.
//
// Files: options.go says what to render; table.go renders tables; observe.go reads what a server
// has; plan.go compares it with the schema; apply.go runs the statements of the plan; check.go
// examines a server.
package schema

// Definition holds the tables of a version.
type Definition struct {
	// Version grows with each change of the tables.
	Version int
	// Oldest is the oldest version whose programs can use the tables. It is raised only for changes
	// beyond new tables, columns with defaults, indexes and views, because older programs then
	// refuse to start.
	Oldest int
	// Tables are the tables. A table that a view fills follows the table that the view reads.
	Tables []Table
}

// Current returns the definition of this program.
func Current() Definition {
	return Definition{Version: 1, Oldest: 1, Tables: []Table{
		spans(), payload(),
		bounds(), operations(), attributes(), minutes(), hours(),
		edges(), deletions(), samplingThroughput(), samplingCalculations(), samplingLeases(), meta(),
	}}
}

// Schema renders the statements that create the tables. It is safe for concurrent use.
type Schema struct {
	opts Options
	Definition
}

// New returns the current schema for options. Errors describe inconsistent options.
func New(o Options) (*Schema, error) { return Current().For(o) }

// For returns a schema with these tables for options. Errors are the same as for [New].
func (d Definition) For(o Options) (*Schema, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Schema{opts: o, Definition: d}, nil
}

// Statement is one SQL statement.
type Statement struct {
	Object string // name of the database, table or view, without database
	SQL    string
	tunes  bool // changes only the retention or settings of a table
	dedups bool // without it, repeated inserts are stored twice
}

// Statements returns the statements that create the database, all tables and all views, in this
// order. They change nothing that exists.
func (s *Schema) Statements() []Statement {
	all := []Statement{{Object: s.opts.Database, SQL: s.createDatabase()}}
	for i := range s.Tables {
		t := &s.Tables[i]
		all = append(all, Statement{Object: s.Local(t.Name), SQL: s.createTable(t)})
		if s.opts.Shape == Sharded {
			all = append(all, Statement{Object: t.Name, SQL: s.createDistributed(t)})
		}
	}
	for i := range s.Tables {
		if t := &s.Tables[i]; t.Source != "" {
			all = append(all, Statement{Object: t.Name + viewSuffix, SQL: s.createView(t)})
		}
	}
	return all
}

// Suffixes of names.
const (
	localSuffix = "_local" // tables of one shard in the shape Sharded
	viewSuffix  = "_view"
)

// Local returns the name of the table that holds the rows of a shard.
func (s *Schema) Local(table string) string {
	if s.opts.Shape == Sharded {
		return table + localSuffix
	}
	return table
}
