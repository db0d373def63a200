// Package hosttest holds fake components and helpers for tests of whole configurations. Tests of
// the packages below pipeline/internal share it.
package hosttest

// Small is a configuration with one pipeline of fakes.
const Small = "receivers: {source: }\nexporters: {sink: }\nservice: {pipelines: {traces: {receivers: [source], exporters: [sink]}}}\n"

// Branching is a configuration with two pipelines; one has a processor.
const Branching = `
receivers: {source: , source/2: }
processors: {step: }
exporters: {sink: , sink/2: , hop: }
service:
  pipelines:
    traces: {receivers: [source, source/2], exporters: [sink, hop]}
    traces/b: {receivers: [source], processors: [step], exporters: [sink/2, hop]}
`
