// Package tracecli shows traces of a running query service on a terminal: the commands `tracing trace`, `tracing search` and
// `tracing services`. It speaks the HTTP JSON API and knows nothing else of the service but the search language, in which it finds
// mistakes by itself.
//
//	GET /api/traces/{id}          ──▶ reader ──spans──▶ forest ──▶ waterfall
//	GET /api/v3/trace-summaries   ──▶ reader ──summaries──▶ table
//
// Answers are read element by element, and what is kept of them is bounded in bytes and in items. What an answer says is taken as it is:
// missing parents, circles of parents and clocks that disagree are shown, not repaired. No text of an answer reaches the terminal with
// characters that could steer it.
package tracecli
