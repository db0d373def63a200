package pipeline

// Branches are the pipelines that list a connector as a receiver. As a Consumer, they pass each
// batch to all of these pipelines.
type Branches interface {
	Consumer
	// Only returns a Consumer that passes batches to these pipelines.
	Only(pipelines ...PipelineID) Consumer
}

// PipelineID is a configuration field of a connector that names a pipeline. When the configuration
// is loaded, the framework checks that the pipeline lists the connector as a receiver.
type PipelineID struct{ ID }

// HeaderReader is implemented by configurations of connectors that may read request headers. It
// maps the name of each header to the path of the key that reads it. The framework checks that the
// receivers and processors in front of the connector keep these headers.
type HeaderReader interface {
	ReadsHeaders() (keys map[string]string)
}

// HeaderJoiner is implemented by configurations of processors that join requests. It returns the
// headers that joined requests keep, and the path of the key that lists them.
type HeaderJoiner interface {
	JoinsHeaders() (key string, kept []string)
}

// HeaderKeeper is implemented by blocks of receiver configurations that say whether to keep request
// headers (include_metadata).
type HeaderKeeper interface{ KeepsHeaders() bool }
