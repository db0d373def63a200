// Package bench is the synthetic workload behind `make bench` and the end-to-end tests: a data set of traces that needs no files, its
// requests as an SDK would send them, hostile variants of it, and benchmarks of what every other number is compared with. Package load,
// below, sends it. `make bench-store` measures the span store with all of it.
//
// # The data set
//
// A trace is a pure function of a seed and an index, so whoever knows both knows what a server must answer ([Dataset.Trace]), and the
// sender needs no input ([Dataset.Requests]). It has 40 services in five tiers, about 110 instances (a resource with 8 attributes each),
// about 330 span names, and traces of 5 to 60 spans (19 on average). A span has 5 to 12 attributes and takes about 400 bytes as OTLP;
// every tenth has events, 3 of 100 failed, with an exception event. Which attributes follows from the operation, as in programs, with a
// few variants: one or two that some of its spans have, the error. So 200,000 spans have some 4,700 shapes: combinations of service, name,
// kind, status, keys and events. A request holds spans of one resource, so that a trace arrives in many requests.
//
// [Dataset.Hostile] is the same data as no server likes it: unique names, random keys, large values and others, one at a time. What they
// cost is measured against the data set in the same run.
//
// # Reading the benchmarks
//
//	go test -run '^$' -bench . ./test/bench
//
// BenchmarkDecode/pdata is D, the cost of building pdata objects from a request, which is what a server pays at least that uses them;
// BenchmarkDecode/walk is otlpdata.FromOTLP on the same bytes, which is what every request costs here. Both report ns/span and
// allocs/span, for requests of 512 spans (a collector's) and of 100 (an SDK's).
//
// Times in one run depend on what else the machine does. BenchmarkRatio measures D and the walk in turns, in the same run, in CPU time
// of the process (so the garbage collector's work counts), and reports walk/D: compare that number between machines and commits.
package bench
