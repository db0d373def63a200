// Package pipeline is the API for authors of components: receivers, processors, exporters,
// connectors and extensions. Package [github.com/tracing-backend/tracing/pipeline/app] turns a list
// of components into a program.
//
// Spans flow from receivers through processors to exporters:
//
//	           pipeline traces/a
//	           +--> processor --> processor --+--> queue --> exporter  (next hop)
//	receiver --+                              +--> exporter            (store) <.. extension
//	           +--> processor ----------------+--> exporter            (next hop)
//	           pipeline traces/b
//
//	-->  Consume, with an edge of the framework between each two components
//	<..  reference: the extension reads from the store
//
// Consume is synchronous: a receiver answers its client when all exporters have answered, or when a
// sending queue before an exporter holds the spans. At the edges, the framework counts spans,
// recovers from panics, distributes spans to several pipelines and exporters, retries, queues, and
// makes callers wait while the configuration is reloaded.
//
// A component is a Go value that a [Factory] builds. It implements [Consumer], or not, depending on
// its kind, and optional interfaces such as [Starter] and [Stopper]. There is no registration and
// no generated code.
//
//	you write                               the framework does
//	--------------------------------------  ---------------------------------------------------
//	a struct with yaml and doc tags         parses YAML, flags and environment variables;
//	                                        prints mistakes with file, line and column; prints
//	                                        the configuration and its documentation
//	defaults and Validate                   applies and checks them before anything is built
//	build                                   passes Settings: logger, metrics, folder, clock,
//	                                        network, memory budget
//	Start and Stop                          calls them in the order of the graph; stops in reverse
//	Consume, one attempt per call           calls it concurrently; counts, retries and queues
//	Permanent, Overloaded, Partial          decides about retries; answers clients
//	Ref[T] to a store or an extension       checks the type before anything is built
//	Settings.Report                         shows the state in /status and in the log
//	nothing                                 reload without losing requests, dead letters, limits
//
// The examples of this package are a receiver, a processor, an exporter, and a whole program.
// Package [github.com/tracing-backend/tracing/pipeline/pipelinetest] is a conformance suite for
// components.
package pipeline
