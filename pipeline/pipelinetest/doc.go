// Package pipelinetest tests that components keep the contracts of package pipeline. One call in a
// test runs a suite of checks for a receiver, a processor, a connector or an exporter:
//
//	func TestConformance(t *testing.T) {
//		o := pipelinetest.ProcessorOptions{Config: "key: value"}
//		pipelinetest.Processor(t, myprocessor.Factory(), o)
//	}
//
// The component is configured by YAML and runs in a real program, between a source and a
// destination that belong to the suite. The source sends spans. The destination records what
// arrives, and decides the outcome of the component's calls. The checks compare the outcome that
// each sender got with what happened to its spans:
//
//   - Every key of the configuration has a doc tag, and the configuration loads.
//   - Building opens no port and no file and starts no goroutine.
//   - The component starts, stops and restarts. It stops under load and when the deadline has
//     passed. No goroutine is left.
//   - If a request is acknowledged, each of its spans has arrived exactly once, with its whole
//     content: ids, times, attributes, events, links, status, scope, resource, schema URLs and
//     tenant. If it is refused, none has.
//   - Batches of objects, of one chunk and of several chunks are handled alike, as are chunks
//     without spans and batches without spans. The numbers of a batch that the component makes are
//     right.
//   - If some spans are rejected (see [pipeline.Partial]), the others arrive once, and the sender
//     gets the number.
//   - The class of an error is passed on: permanent, overloaded or temporary.
//   - Concurrent callers get the outcome of their own spans.
//   - A call returns when its context ends.
//   - Batches are not modified, neither those that were received nor those that were passed on.
//
// Spans are identified by their names, which are unique. The options say what a protocol cannot
// transport. Run the suite with the race detector, too. A test that calls it must not run in
// parallel with others, whose goroutines it would report.
//
// The package also has helpers for the tests of a single component: [StartReceiver], [StartHop],
// [Fixture] and [Sink].
package pipelinetest
