// Package compare measures the store of package clickhouse beside two published schemas for traces
// in ClickHouse: Jaeger 2's, and the schema of the clickhouse exporter of OpenTelemetry Collector
// Contrib. All three are loaded with the same spans, in batches of the same size, through the same
// client library, into a new server of the same engine.
//
// `make bench-clickhouse` runs the comparison. For each schema it prints the spans inserted per
// second, the CPU time of server and client, bytes per span, and the medians of some queries:
//
//   - trace by id: the whole trace.
//   - newest 20 of a service: the ids of traces within an hour. Jaeger's statement has no order, so
//     that its result is any 20 traces; "right" is the share of results that were due.
//   - newest 20, with summaries: the same with what a list of results shows.
//   - attribute: the ids of at most 20 traces with one of 20,000 users, without a service.
//   - calls, errors and durations: of a service, for each minute of an hour.
//   - heatmap: spans of a service by minute and duration, within an hour.
//
// Statements on the published schemas are those of Jaeger where Jaeger has them: its heatmap, and
// all statements on the schema of the Collector, which has no reader, are written for this
// comparison.
package compare
