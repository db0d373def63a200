// Package traces implements the commands `tracing trace`, `tracing search` and `tracing
// services`, which show traces from a running query service on a terminal. It uses only the HTTP
// JSON API of the service. Search expressions are parsed locally, so that mistakes are reported
// without a request.
//
//	GET /api/traces/{id}          ──▶ reader ──spans──▶ forest ──▶ waterfall
//	GET /api/v3/trace-summaries   ──▶ reader ──summaries──▶ table
//
// Responses are decoded incrementally, with limits on bytes and items. Inconsistent data, such as
// missing parents, cycles of parents or clock differences, is shown and not repaired. Text from
// responses is escaped, so that it cannot control the terminal.
package traces
