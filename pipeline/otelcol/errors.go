package otelcol

import (
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/tracing-backend/tracing/pipeline"
)

// classified returns an error of a component with the class that this program knows.
func classified(err error) error {
	if consumererror.IsPermanent(err) {
		return pipeline.Permanent(err)
	}
	return err
}
