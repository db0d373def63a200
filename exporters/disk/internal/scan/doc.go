// Package search executes queries over sources: memtables and segments, see package source.
//
//	Query.Where ──compile──▶ expr        once per query; conditions are numbered
//	     expr   ──bind─────▶ program     once per source and shape that comes up: what the shape decides is folded away
//	     program ──judge───▶ no/yes/?    once per block and shape: filters and the longest duration
//	     program ──filter──▶ rows        once per block that is opened: one column after the other, the cheapest first
//
//	blocks of all sources                matches                       results
//	 ┌───────────┐ newest first, when   ┌────────────┐ newest first   ┌──────────────┐
//	 │ heap by   │ their turn has come  │ heap of    │ first of each  │ ids,         │
//	 │ MaxStart  │ ───────────────────▶ │ short lists│ ─────────────▶ │ summaries,   │ ─▶ caller
//	 └───────────┘ ◀─── what is left ── └────────────┘     trace      │ whole traces │
//	                                                                  └──────────────┘
//
// A block is open only while it is examined, and its matches are kept as a short list: start, trace id. What does not fit into the list
// is examined again when its turn has come. So a caller that reads slowly holds neither buffers nor a place among the decoders.
//
// Most blocks are ruled out without looking at their shapes: filters differ between blocks only in which of the texts that the query asks
// for they deny, and for each such set all shapes are judged once. Matches that are known together are read together, so that a block
// is decoded once for all traces that it has.
//
// A condition on a span is evaluated on the cells of its row. Cells that hold several encoded fields (rows.Extra, rows.Events, rows.Links)
// cannot be looked into one by one: the span is then assembled and given to tracestore.Match, with which everything here agrees.
//
// Aggregates count the rows that match instead of listing them. Where there are more than a budget allows, they take one block of so many,
// which are spread over the window by their number alone, so that what they count is in proportion. Values are counted by their codes, shape
// by shape; what a shape or a resource decides is counted once for all its rows.
//
// What sources that do not change say of names and of calls is kept between queries, within Options.Memory for each: names of services and
// operations, and the calls between segments, see ledger. It is brought up to date when a query finds other sources than the one before.
//
// Damage does not end a query. What could be read is returned, and the outcome says what could not.
package scan
