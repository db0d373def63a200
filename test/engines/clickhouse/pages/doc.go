// Package pages measures the pages of the web UI over ClickHouse beside the same pages over the
// disk store, with the same spans.
//
// `make bench-clickhouse-pages` runs the comparison. For each page it sends the requests that the
// page sends, those that do not wait for others at the same time, and prints the median time until
// the last response with each store, the CPU time, and what the page asked of ClickHouse: the
// numbers of statements and of rows read. With PROFILE=1 it also prints the statements of each
// page. CPU times hardly depend on what else the machine does.
package pages
