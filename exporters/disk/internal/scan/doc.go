// Package scan contains what all queries of the span store have in common. Packages find,
// aggregate, graph and names build on it; they do not import each other.
//
//	store.go           Store, Session: the sources of one query; the limit on open blocks
//	damage.go          parts of files that a query could not read
//	query.go           Query: the conditions of a query, numbered
//	plan.go, bind.go   Plan, Program: a query bound to one source, and to one shape of it
//	blockfilter.go     blocks that filters rule out
//	filter.go, row.go  Filter: evaluation of the rows of an open block; reading of single rows
//	window.go          ranges of start times
//	split.go           which part of a range statistics count, and which part rows
//	duplicates.go      recognition of spans that are stored twice
//
// A shape is what similar spans have in common: service, name and columns (see package rows). A
// condition is evaluated as early as possible:
//
//	tracestore.Query
//	   │ Compile      once per query
//	   ▼
//	 Query
//	   │ NewPlan      once per source
//	   ▼
//	 Plan
//	   │ bind         once per shape: parts that the shape decides are removed
//	   ▼
//	 Program
//	   │ EnterBlock   once per block and shape, with the filters of the block and the longest
//	   ▼              duration of the shape in it
//	 no, yes, or depends
//	   │ Narrow       once per opened block: column by column, the cheapest first
//	   ▼
//	 rows
//
// Most blocks are ruled out without looking at their shapes. Filters differ between blocks only in
// which of the query's texts they exclude, so each set of excluded texts is evaluated once for all
// shapes.
//
// Conditions are evaluated on the cells of a row. Cells that hold several encoded fields
// (rows.Extra, rows.Events, rows.Links) cannot be read one by one. For these, the whole span is
// assembled and passed to tracestore.Match, which defines the result of every condition.
//
// Damage does not end a query. The query returns what could be read and says what is missing.
package scan
