// Package find answers searches, and reads traces by their ids.
//
//	find.go             Finder, search: one search from its query to its results
//	pending.go          the blocks that a search has not examined yet
//	heaps.go            the orders in which blocks, matches and rows are taken
//	examine.go          the newest matches of one block
//	tracefilter.go      the traces that may meet a condition on the trace
//	tracefacts.go       facts about a trace from its parts
//	tracecondition.go   evaluation of such a condition before the trace is read
//	listed.go           traces that an earlier page has listed
//	trace.go, pieces.go whole traces, in pieces
//	prefetch.go         reading of several traces together
//	summary.go          summaries of traces
//	outline.go          outlines of traces
//	extras.go           events, links and peers of spans, for outlines
//	select.go           single spans of traces
//	findspans.go        spans of one trace that match
//	size.go             approximate size of a trace
//	paths.go            critical paths and call paths of two sets of traces
//	version.go          whether a trace has changed
//
// A search goes through the blocks of all sources, newest first:
//
//	blocks of all sources              matches                       results
//	┌───────────┐ the newest, unless  ┌────────────┐ newest first,  ┌──────────────┐
//	│ heap by   │ a newer match is    │ heap of    │ the first of   │ ids,         │
//	│ MaxStart  │ known               │ short lists│ each trace     │ summaries,   │──▶ caller
//	│           │ ──────────────────▶ │            │ ─────────────▶ │ whole traces │
//	└───────────┘ ◀──── older rows ── └────────────┘                └──────────────┘
//
// A block is open only while it is examined. Its matches are kept as a short list of start times
// and trace ids. Matches that do not fit into the list are found by reexamining the block when all
// newer matches were returned. So a slow caller occupies neither buffers nor decoders.
//
// Traces whose matches are known at the same time are read together, so that each block is decoded
// once for all of its traces.
//
// A condition on the trace, such as a minimum duration, does not say which blocks to open. If few
// traces meet it, a search would have to read many traces. Such a search goes through the bounds of
// the parts of all traces once, and then opens only the blocks of traces that may meet the
// condition.
package find
