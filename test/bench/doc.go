// Package bench generates the synthetic workload of `make bench` and the end-to-end tests. It has a
// data set of traces, the requests in which an SDK would send them, hostile variants of these
// requests, and the benchmarks that measure the baseline for all other benchmarks. Package load
// sends the requests to a server. `make bench-store` measures the span store with the data set.
//
// # The data set
//
// A trace is a pure function of a seed and an index. Therefore [Dataset.Requests] needs no files,
// and [Dataset.Trace] returns what a server must answer. The data set has 40 services in five
// tiers, about 110 instances (resources with 8 attributes each), about 330 span names, and traces
// of 5 to 60 spans (19 on average). A span has 5 to 12 attributes and takes about 400 bytes as
// OTLP. 10 % of the spans have events. 3 % failed and have an exception event. As in real programs,
// the operation determines the keys of a span's attributes, except for a few variants: one or two
// attributes that only some of its spans have, and the error. 200,000 spans have about 4,700
// shapes, which are combinations of service, name, kind, status, keys and events. A request holds
// spans of one resource, so that the spans of a trace arrive in many requests.
//
// [Dataset.Hostile] changes the data in one way that is expensive for servers: unique names, random
// keys, large values and others. Benchmarks compare its cost with the unchanged data in the
// same run.
//
// # Reading the benchmarks
//
//	go test -run '^$' -bench . ./test/bench
//
// BenchmarkDecode/pdata measures D, the cost of decoding a request into pdata objects. D is the
// lower bound for servers that use pdata. BenchmarkDecode/walk measures otlpdata.FromOTLP with the
// same bytes, the cost of every request in this program. Both report ns/span and allocs/span, for
// requests of 512 spans (typical of collectors) and of 100 spans (typical of SDKs).
//
// Absolute times depend on the machine and its other load. BenchmarkRatio measures D and the walk
// alternately in the same run, in CPU time of the process, which includes the garbage collector. It
// reports walk/D: compare this number between machines and commits.
package bench
