package pipeline

// Branches are the pipelines that list a connector as a receiver. As a Consumer, they pass each
// batch to all of these pipelines, like several exporters of one pipeline.
type Branches interface {
	Consumer
	// Only returns a Consumer that passes batches to these pipelines.
	Only(pipelines ...PipelineID) Consumer
}

// PipelineID is a configuration field of a connector that names a pipeline. When the configuration
// is loaded, the framework checks that the pipeline lists the connector as a receiver.
type PipelineID struct{ ID }

// HeaderReader is implemented by configurations of connectors that may read the headers of
// requests. It returns the paths of the keys that do so, by the names of the headers. The framework
// checks that receivers and processors in front of the connector keep the headers.
type HeaderReader interface {
	ReadsHeaders() (keys map[string]string)
}

// HeaderJoiner is implemented by configurations of processors that join requests. It returns the
// path of a key with the headers that joined requests keep, and these headers.
type HeaderJoiner interface {
	JoinsHeaders() (key string, kept []string)
}

// HeaderKeeper is implemented by blocks of receiver configurations that say whether the headers of
// requests stay available (include_metadata).
type HeaderKeeper interface{ KeepsHeaders() bool }
