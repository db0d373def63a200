package routing

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlresource"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlspan"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/ottlfuncs"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// condition says which spans a row is about. One of its functions is set.
type condition struct {
	request  func(otlpdata.Metadata) bool
	resource func(context.Context, ptrace.ResourceSpans) (bool, error)
	span     func(context.Context, ptrace.ResourceSpans, ptrace.ScopeSpans, ptrace.Span) (bool, error)
}

// requestCondition is the form of conditions about headers, which are not OTTL.
var requestCondition = regexp.MustCompile(`^request\["([^"]+)"\]\s*(==|!=)\s*"([^"]*)"$`)

// statementFunction is the beginning of a statement.
var statementFunction = regexp.MustCompile(`^\s*(\w+)\s*\(`)

// compile parses the condition of a row.
func (r *row) compile(log *zap.Logger) (condition, error) {
	if r.Context == contextRequest {
		return compileRequest(r.Condition)
	}
	statement := r.Statement
	if statement == "" {
		statement = "route() where " + r.Condition
	}
	if f := statementFunction.FindStringSubmatch(statement); f != nil && f[1] != "route" {
		return condition{}, fmt.Errorf("%s is not available in statements; write route() where CONDITION, and use the transform "+
			"processor for changes", f[1])
	}
	return compileStatement(statement, r.Context, log)
}

func compileRequest(text string) (condition, error) {
	m := requestCondition.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return condition{}, errors.New(`must be request["NAME"] == "VALUE" or request["NAME"] != "VALUE"`)
	}
	name, equal, value := strings.ToLower(m[1]), m[2] == "==", m[3]
	return condition{request: func(headers otlpdata.Metadata) bool {
		for n, values := range headers.All() {
			if n == name {
				return slices.ContainsFunc(values, func(v string) bool { return (v == value) == equal })
			}
		}
		return false
	}}, nil
}

// compileStatement parses an OTTL statement. Without a configured context, the prefix of the names
// in the statement determines it; names without a prefix belong to the resource.
func compileStatement(text, name string, log *zap.Logger) (condition, error) {
	if strings.Contains(text, "otelcol.") {
		return condition{}, errors.New(`otelcol is not available here; write context: request and condition: request["NAME"] == "VALUE"`)
	}
	parsers, err := parserCollection(log)
	if err != nil {
		return condition{}, err
	}
	statements := ottl.NewStatementsGetter([]string{text})
	if name != "" {
		return parsers.ParseStatementsWithContext(name, statements, true)
	}
	if c, err := parsers.ParseStatements(statements); err == nil {
		return c, nil
	}
	return parsers.ParseStatementsWithContext(contextResource, statements, true)
}

func parserCollection(log *zap.Logger) (*ottl.ParserCollection[condition], error) {
	set := component.TelemetrySettings{Logger: log}
	resources, err := ottlresource.NewParser(functions[*ottlresource.TransformContext](), set, ottlresource.EnablePathContextNames())
	if err != nil {
		return nil, err
	}
	ofSpans := functions[*ottlspan.TransformContext]()
	root := ottlfuncs.NewIsRootSpanFactory()
	ofSpans[root.Name()] = root
	spans, err := ottlspan.NewParser(ofSpans, set, ottlspan.EnablePathContextNames())
	if err != nil {
		return nil, err
	}
	return ottl.NewParserCollection(set,
		ottl.WithParserCollectionContext(ottlresource.ContextName, &resources, ottl.WithStatementConverter(resourceCondition)),
		ottl.WithParserCollectionContext(ottlspan.ContextName, &spans, ottl.WithStatementConverter(spanCondition)))
}

// functions returns the OTTL functions for conditions, which have no side effects.
func functions[K any]() map[string]ottl.Factory[K] {
	all := ottlfuncs.StandardConverters[K]()
	all["route"] = ottl.NewFactory("route", nil, func(ottl.FunctionContext, ottl.Arguments) (ottl.ExprFunc[K], error) {
		return func(context.Context, K) (any, error) { return true, nil }, nil
	})
	return all
}

func resourceCondition(_ *ottl.ParserCollection[condition], _ ottl.StatementsGetter,
	parsed []*ottl.Statement[*ottlresource.TransformContext]) (condition, error) {
	return condition{resource: func(ctx context.Context, rs ptrace.ResourceSpans) (bool, error) {
		tc := ottlresource.NewTransformContext(rs.Resource(), rs)
		defer tc.Close()
		_, met, err := parsed[0].Execute(ctx, tc)
		return met, err
	}}, nil
}

func spanCondition(_ *ottl.ParserCollection[condition], _ ottl.StatementsGetter,
	parsed []*ottl.Statement[*ottlspan.TransformContext]) (condition, error) {
	return condition{span: func(ctx context.Context, rs ptrace.ResourceSpans, ss ptrace.ScopeSpans, s ptrace.Span) (bool, error) {
		tc := ottlspan.NewTransformContext(rs, ss, s)
		defer tc.Close()
		_, met, err := parsed[0].Execute(ctx, tc)
		return met, err
	}}, nil
}
