package otelcol

import (
	"cmp"
	"fmt"

	"go.opentelemetry.io/collector/component"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// Option adds information that a Collector factory does not have.
type Option func(*options)

type options struct {
	summary        string
	keys           map[string]string
	checkedByStart bool
	explain        func(component.Config, sampling.TraceID) sampling.Stage
}

// Summary sets the sentence that says what the component does, for the reference documentation.
func Summary(sentence string) Option {
	return func(o *options) { o.summary = sentence }
}

// Keys sets the descriptions of keys for the reference documentation. A name is the path of a key,
// such as `policies[].latency.threshold_ms`, or the end of the paths of several keys:
// `threshold_ms`. The longest matching name applies.
func Keys(docs map[string]string) Option {
	return func(o *options) { o.keys = docs }
}

// CheckedByStart says that starting the processor finds mistakes in its configuration and has no
// effect outside the process. When a configuration is loaded, the processor is started and stopped
// on a trial basis.
func CheckedByStart() Option {
	return func(o *options) { o.checkedByStart = true }
}

// Explained says how the processor decides which spans it drops, see [sampling.TraceExplainer].
func Explained(explain func(component.Config, sampling.TraceID) sampling.Stage) Option {
	return func(o *options) { o.explain = explain }
}

// explainer explains what a processor does with a trace. The zero value is for processors that
// never drop spans.
type explainer struct {
	explain func(component.Config, sampling.TraceID) sampling.Stage
	config  component.Config
}

// ExplainTrace implements [sampling.TraceExplainer].
func (e explainer) ExplainTrace(id sampling.TraceID) (stage sampling.Stage, ok bool) {
	if e.explain == nil {
		return sampling.Stage{}, false
	}
	return e.explain(e.config, id), true
}

func optionsOf(all []Option) (o options) {
	for _, set := range all {
		set(&o)
	}
	return o
}

// applied returns the factory with the information from the options and f.
func (o *options) applied(f component.Factory, out pipeline.Factory) pipeline.Factory {
	out = out.Doc(cmp.Or(o.summary, fmt.Sprintf("Runs the component %s of the OpenTelemetry Collector.", f.Type())))
	if old, ok := f.(interface{ DeprecatedAlias() component.Type }); ok && old.DeprecatedAlias().String() != "" {
		out = out.Alias(old.DeprecatedAlias().String())
	}
	return out
}
