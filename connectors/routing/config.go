package routing

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

type config struct {
	Table            []row                 `yaml:"table" doc:"Rows of the routing table, in this order."`
	DefaultPipelines []pipeline.PipelineID `yaml:"default_pipelines" doc:"Pipelines for spans that no row has moved. Without them, the spans are dropped."`
	ErrorMode        string                `yaml:"error_mode" doc:"What happens if a condition cannot be evaluated: propagate (the request is refused), ignore (not met, logged) or silent (not met)."`
}

type row struct {
	Context   string                `yaml:"context" doc:"Subject of the condition: resource, span, or request (its headers). If empty, it follows from the names in the condition; names without a prefix refer to the resource."`
	Condition string                `yaml:"condition" doc:"Condition in the OpenTelemetry Transformation Language (OTTL), or for request: request[\"NAME\"] == \"VALUE\", or with !=."`
	Statement string                `yaml:"statement" doc:"The condition as a statement: route() where CONDITION."`
	Action    string                `yaml:"action" doc:"move: later rows do not see the spans; copy: they do. The default is move."`
	Pipelines []pipeline.PipelineID `yaml:"pipelines" doc:"Pipelines for the spans that meet the condition."`
}

const (
	contextRequest  = "request"
	contextResource = "resource"
	contextSpan     = "span"
	actionCopy      = "copy"
	actionMove      = "move"
	modePropagate   = "propagate"
	modeIgnore      = "ignore"
	modeSilent      = "silent"
)

// Validate checks the rows.
func (c *config) Validate() error {
	var errs []error
	if len(c.Table) == 0 {
		errs = append(errs, pipeline.BadKey("table", "needs at least one row"))
	}
	switch c.ErrorMode {
	case modePropagate, modeIgnore, modeSilent:
	default:
		errs = append(errs, pipeline.BadKey("error_mode", "%q is not a mode; write propagate, ignore or silent", c.ErrorMode))
	}
	for i := range c.Table {
		key := fmt.Sprintf("table::%d", i)
		if err := c.Table[i].check(key); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// ReadsHeaders implements [pipeline.HeaderReader].
func (c *config) ReadsHeaders() map[string]string {
	keys := map[string]string{}
	for i, r := range slices.Backward(c.Table) {
		if m := requestCondition.FindStringSubmatch(strings.TrimSpace(r.Condition)); m != nil && r.Context == contextRequest {
			keys[m[1]] = fmt.Sprintf("table::%d::condition", i)
		}
	}
	return keys
}

func (r *row) check(key string) error {
	switch r.Context {
	case "", contextRequest, contextResource, contextSpan:
	default:
		return pipeline.BadKey(key+"::context", "%q is not a context of spans; write resource, span or request", r.Context)
	}
	if r.Action != "" && r.Action != actionMove && r.Action != actionCopy {
		return pipeline.BadKey(key+"::action", "%q is not an action; write move or copy", r.Action)
	}
	at := "condition"
	switch {
	case (r.Condition == "") == (r.Statement == ""):
		return pipeline.BadKey(key, "needs either a condition or a statement")
	case r.Context == contextRequest && r.Statement != "":
		return pipeline.BadKey(key+"::statement", "context request needs a condition, not a statement")
	case len(r.Pipelines) == 0:
		return pipeline.BadKey(key, "needs pipelines")
	case r.Statement != "":
		at = "statement"
	}
	if _, err := r.compile(zap.NewNop()); err != nil {
		return pipeline.BadKey(key+"::"+at, "%s", strings.Join(strings.Fields(err.Error()), " "))
	}
	return nil
}
