// Package pipelinetest holds components to the contracts of package pipeline: one call in a test runs a suite against a receiver, a
// processor or an exporter, those of this repository as well as those of anybody who extends it.
//
//	func TestConformance(t *testing.T) {
//		pipelinetest.Processor(t, myprocessor.Factory(), "key: value")
//	}
//
// The component is configured by YAML and runs in a real program, between parts that belong to the suite: spans are sent in at the front,
// and what arrives behind is written down in a ledger, which also decides how the component is answered. The checks then compare what each
// sender was told with what became of its spans:
//
//   - every key of the configuration has a name and a sentence, and the configuration loads;
//   - building opens no port and no file and starts no goroutine;
//   - it starts, stops and starts again; it stops under load, and at the end of the deadline; no goroutine stays behind;
//   - who is told yes finds each span exactly once behind the component, who is told no finds none;
//   - the class of an error gets through: what is permanent, overloaded or to be tried again stays so;
//   - many callers at once, answered at random, are each told the truth about their own spans;
//   - a call returns when its context ends;
//   - no batch is written to, neither one that was given nor one that was passed on.
//
// Spans are known by their names, which are unique, so a protocol that carries nothing but names can be tested. Run the suite with the race
// detector as well: it sees what the ledger cannot. A test that calls it must not run in parallel with others, which would be taken for
// what the component left behind.
package pipelinetest
