package traceql

import (
	"math"
	"slices"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// MetricsQuery is a parsed metrics query: numbers over time that are calculated from spans.
type MetricsQuery struct {
	Expr  MetricsExpr
	Hints []Hint // with (...), in the order of the query
}

// MetricsExpr is an expression whose value is a list of series: [MetricsStage], [MetricsMath],
// [MetricsFilter] or [MetricsTop]. A side of a MetricsMath may be a [MetricsNumber].
type MetricsExpr interface{ isMetricsExpr() }

// MetricsStage calculates series from the spans that a set selects.
type MetricsStage struct {
	Set      storequery.SpanSet
	Function MetricsFunction
	Of       MetricsField // measured field, for functions with HasField
	By       []MetricsField
	// Quantiles are the arguments of quantile_over_time, from 0 to 1.
	Quantiles []float64
	Compare   MetricsCompare
}

// MetricsCompare holds the arguments of compare.
type MetricsCompare struct {
	Selection storequery.SpanSet
	Top       int    // values of each field
	From, To  uint64 // start of selected spans, nanoseconds since the Unix epoch; 0: no bound
}

// MetricsField is a field, and its text in the query, which is the key of the label.
type MetricsField struct {
	tracestore.Field
	Text string
}

// MetricsNumber is a constant.
type MetricsNumber struct {
	Value float64
	// Integer marks a constant of integers only, whose division truncates.
	Integer bool
}

// MetricsMath combines two expressions by +, -, * or /. At most one of them is a MetricsNumber.
type MetricsMath struct {
	Op          byte
	Left, Right MetricsExpr
}

// MetricsFilter keeps the samples that compare with a number.
type MetricsFilter struct {
	Expr  MetricsExpr
	Op    tracestore.Op // Eq to Ge
	Value MetricsNumber
}

// MetricsTop keeps the N highest samples, or with Bottom the lowest, of each time.
type MetricsTop struct {
	Expr   MetricsExpr
	N      int
	Bottom bool
}

func (MetricsStage) isMetricsExpr()  {}
func (MetricsNumber) isMetricsExpr() {}
func (MetricsMath) isMetricsExpr()   {}
func (MetricsFilter) isMetricsExpr() {}
func (MetricsTop) isMetricsExpr()    {}

// MetricsFunction is a function of a MetricsStage, by its name.
type MetricsFunction string

// The functions.
const (
	MetricsRate      MetricsFunction = "rate"
	MetricsCount     MetricsFunction = "count_over_time"
	MetricsSum       MetricsFunction = "sum_over_time"
	MetricsAvg       MetricsFunction = "avg_over_time"
	MetricsMin       MetricsFunction = "min_over_time"
	MetricsMax       MetricsFunction = "max_over_time"
	MetricsQuantile  MetricsFunction = "quantile_over_time"
	MetricsHistogram MetricsFunction = "histogram_over_time"
	MetricsComparing MetricsFunction = "compare"
)

var metricsFunctions = []MetricsFunction{MetricsRate, MetricsCount, MetricsSum, MetricsAvg, MetricsMin, MetricsMax, MetricsQuantile,
	MetricsHistogram, MetricsComparing}

// HasField reports whether the function measures a field.
func (f MetricsFunction) HasField() bool {
	return f != MetricsRate && f != MetricsCount && f != MetricsComparing
}

// Limits of a metrics query.
const (
	MaxMetricsStages   = 16 // functions such as rate()
	MaxMetricsFields   = tracestore.MaxGroupFields
	MaxMetricsTop      = 1000 // N of topk and bottomk, and values of compare
	MaxQuantiles       = 16
	defaultCompareTop  = 10
	maxInteger         = 1 << 63 // integers are below it
	maxMetricsOperator = 64      // arithmetic, comparisons, topk and bottomk
)

func isMetricsFunction(t token) bool {
	return slices.ContainsFunc(metricsFunctions, func(f MetricsFunction) bool { return t.isWord(string(f)) })
}

// ParseMetrics is [Language.ParseMetrics] of the zero value.
func ParseMetrics(text string) (MetricsQuery, error) { return Language{}.ParseMetrics(text) }

// ParseMetrics parses a metrics query. The error is an [*Error].
func (l Language) ParseMetrics(text string) (MetricsQuery, error) {
	p, err := l.parser(text)
	if err != nil {
		return MetricsQuery{}, err
	}
	m := metricsParser{parser: p}
	return m.query()
}

// metricsParser parses metrics queries. The part of a pipeline before its function is parsed by
// parser.parseQuery.
//
//	query    = sum { filter | "|" top } { hints }
//	sum      = pipeline | product { ( "+" | "-" ) product }
//	product  = operand { ( "*" | "/" ) operand }
//	operand  = number | "(" sum { filter | "|" top } ")"
//	pipeline = search "|" function [ "by" "(" fields ")" ] { filter | "|" top }
//	filter   = ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) sum of numbers
//	top      = ( "topk" | "bottomk" ) "(" number ")"
type metricsParser struct {
	*parser
	stages    int
	operators int
	durations bool // constants may be durations, which become seconds
}

func (p *metricsParser) query() (q MetricsQuery, err error) {
	if q.Expr, err = p.sum(); err != nil {
		return q, err
	}
	if _, constant := q.Expr.(MetricsNumber); constant {
		return q, p.fail(p.tokens[0], "not a metrics query: expected spans and a function, such as {} | rate()")
	}
	if q.Expr, err = p.secondStages(q.Expr); err != nil {
		return q, err
	}
	for p.peek().isWord("with") {
		if q.Hints, err = p.parseHints(q.Hints); err != nil {
			return q, err
		}
	}
	switch t := p.peek(); {
	case t.is("+") || t.is("-") || t.is("*") || t.is("/"):
		return q, p.fail(t, "put each operand of arithmetic in parentheses, such as ({} | rate()) / ({} | rate())")
	case t.kind != end:
		return q, p.fail(t, "expected an operator, | topk(...), with (...) or the end, found %s", describe(t))
	}
	return q, nil
}

// operator counts an operator at t.
func (p *metricsParser) operator(t token) error {
	if p.operators++; p.operators > maxMetricsOperator {
		return p.fail(t, "metrics query has more than %d operators", maxMetricsOperator)
	}
	return nil
}

func (p *metricsParser) sum() (MetricsExpr, error) {
	if at := p.firstFunction(); at >= 0 {
		return p.pipeline(at)
	}
	left, err := p.product()
	for err == nil {
		t := p.peek()
		if !t.is("+") && !t.is("-") {
			return left, nil
		}
		p.takeToken()
		if err = p.operator(t); err != nil {
			return nil, err
		}
		var right MetricsExpr
		if right, err = p.product(); err == nil {
			left, err = p.math(t, t.text[0], left, right)
		}
	}
	return left, err
}

func (p *metricsParser) product() (MetricsExpr, error) {
	left, err := p.operand()
	for err == nil && (p.peek().is("*") || p.peek().is("/")) {
		t := p.takeToken()
		if err = p.operator(t); err != nil {
			return nil, err
		}
		var right MetricsExpr
		if right, err = p.operand(); err == nil {
			left, err = p.math(t, t.text[0], left, right)
		}
	}
	return left, err
}

// math returns an operation, or its result if both sides are constants.
func (p *metricsParser) math(t token, op byte, left, right MetricsExpr) (MetricsExpr, error) {
	a, ok1 := left.(MetricsNumber)
	b, ok2 := right.(MetricsNumber)
	if !ok1 || !ok2 {
		return MetricsMath{op, left, right}, nil
	}
	out := MetricsNumber{Calculate(op, a.Value, b.Value), a.Integer && b.Integer}
	if out.Integer {
		out.Value = math.Trunc(out.Value)
		out.Integer = math.Abs(out.Value) < maxInteger
	}
	if math.IsNaN(out.Value) || math.IsInf(out.Value, 0) {
		return nil, p.fail(t, "the result is not a finite number")
	}
	return out, nil
}

// Calculate returns the result of +, -, * or /.
func Calculate(op byte, a, b float64) float64 {
	switch op {
	case '+':
		return a + b
	case '-':
		return a - b
	case '*':
		return a * b
	}
	return a / b
}

// firstFunction returns the position of the | before the function of a pipeline that begins at the
// next token, or -1 if no pipeline begins there.
func (p *metricsParser) firstFunction() int {
	depth := 0
	for i := p.at; i < len(p.tokens); i++ {
		switch t := p.tokens[i]; {
		case t.is("(") || t.is("{"):
			depth++
		case t.is(")") || t.is("}"):
			if depth--; depth < 0 {
				return -1
			}
		case t.is("|") && depth == 0 && i+1 < len(p.tokens) && isMetricsFunction(p.tokens[i+1]):
			return i
		}
	}
	return -1
}

func (p *metricsParser) operand() (MetricsExpr, error) {
	t := p.peek()
	switch {
	case t.is("-"):
		p.takeToken()
		if err := p.operator(t); err != nil {
			return nil, err
		}
		e, err := p.operand()
		n, constant := e.(MetricsNumber)
		if err == nil && !constant {
			return nil, p.fail(t, "- is allowed only before numbers; multiply by -1")
		}
		n.Value = -n.Value
		return n, err
	case t.kind == number:
		return p.constant(p.takeToken())
	case t.is("("):
		p.takeToken()
		if err := p.enter(t); err != nil {
			return nil, err
		}
		defer p.leave()
		e, err := p.sum()
		if _, constant := e.(MetricsNumber); err == nil && !constant {
			e, err = p.secondStages(e)
		}
		if err != nil {
			return nil, err
		}
		if next := p.takeToken(); !next.is(")") {
			if next.kind == end {
				return nil, p.fail(t, "missing closing )")
			}
			return nil, p.fail(next, "expected an operator or ), found %s", describe(next))
		}
		return e, nil
	}
	return nil, p.fail(t, "not a metrics query: expected spans and a function, such as {} | rate()")
}

func (p *metricsParser) constant(t token) (n MetricsNumber, err error) {
	if p.durations {
		if d, problem := parseDuration(t.text); problem == "" {
			return MetricsNumber{Value: d.Seconds()}, nil
		}
	}
	n.Value, err = strconv.ParseFloat(t.text, 64)
	if err != nil || math.IsInf(n.Value, 0) {
		return n, p.fail(t, "expected a number without a unit, found %s", describe(t))
	}
	_, errInteger := strconv.ParseInt(t.text, 10, 64)
	n.Integer = errInteger == nil && n.Value < maxInteger
	return n, nil
}

// pipeline parses spans, which end at token number at, a function, and what follows it.
func (p *metricsParser) pipeline(at int) (MetricsExpr, error) {
	if p.stages++; p.stages > MaxMetricsStages {
		return nil, p.fail(p.peek(), "metrics query has more than %d functions", MaxMetricsStages)
	}
	set, err := p.spans(at)
	if err != nil {
		return nil, err
	}
	p.at = at + 1
	s := MetricsStage{Set: set}
	if err := p.function(&s); err != nil {
		return nil, err
	}
	if p.peek().isWord("by") {
		by := p.takeToken()
		if s.Function == MetricsComparing {
			return nil, p.fail(by, "compare(...) has no by(...)")
		}
		if s.By, err = p.fieldList(by); err != nil {
			return nil, err
		}
	}
	return p.secondStages(s)
}

// spans parses the search up to token number at. Hints are not allowed in it, because only hints at
// the end of the query have an effect.
func (p *metricsParser) spans(at int) (storequery.SpanSet, error) {
	before := *p.parser
	before.tokens = append(slices.Clone(p.tokens[:at]), token{kind: end, begin: p.tokens[at].begin, end: p.tokens[at].begin})
	q, err := before.parseQuery()
	p.conditions, p.steps = before.conditions, before.steps
	if err == nil && len(q.Hints) > 0 {
		err = p.fail(p.tokens[at], "put with (...) at the end of the query")
	}
	return q.Set, err
}

func (p *metricsParser) function(s *MetricsStage) (err error) {
	t := p.takeToken()
	s.Function = MetricsFunction(t.text)
	open := p.takeToken()
	if !open.is("(") {
		return p.fail(open, "expected ( after %s", t.text)
	}
	switch {
	case s.Function == MetricsComparing:
		return p.compare(open, &s.Compare)
	case !s.Function.HasField():
		if next := p.takeToken(); !next.is(")") {
			return p.fail(next, "%s has no arguments; put conditions in { } and fields in by (...)", t.text)
		}
		return nil
	}
	if s.Of, err = p.metricsField(); err != nil {
		return err
	}
	for s.Function == MetricsQuantile && p.skip(",") {
		n := p.takeToken()
		q, err := p.constant(n)
		if err != nil || q.Value < 0 || q.Value > 1 {
			return p.fail(n, "expected a quantile from 0 to 1, found %s", describe(n))
		}
		if s.Quantiles = append(s.Quantiles, q.Value); len(s.Quantiles) > MaxQuantiles {
			return p.fail(n, "more than %d quantiles", MaxQuantiles)
		}
	}
	next := p.takeToken()
	switch {
	case !next.is(")"):
		return p.fail(next, "expected ) after the arguments of %s, found %s", t.text, describe(next))
	case s.Function == MetricsQuantile && len(s.Quantiles) == 0:
		return p.fail(next, "expected a comma and quantiles, such as quantile_over_time(duration, 0.5, 0.99)")
	}
	return nil
}

// compare parses the arguments of compare, from the selection on.
func (p *metricsParser) compare(open token, c *MetricsCompare) error {
	depth, at := 0, p.at
	for ; at < len(p.tokens)-1; at++ {
		t := p.tokens[at]
		if depth == 0 && (t.is(",") || t.is(")")) {
			break
		}
		if t.is("{") || t.is("(") {
			depth++
		} else if t.is("}") || t.is(")") {
			depth--
		}
	}
	set, err := p.spans(at)
	if err != nil {
		return err
	}
	if _, ok := set.(storequery.Select); !ok {
		return p.fail(open, "the selection of compare must be conditions in one { }")
	}
	p.at = at
	c.Selection, c.Top = set, defaultCompareTop
	var numbers []uint64
	for p.skip(",") {
		t := p.takeToken()
		n, err := strconv.ParseUint(t.text, 10, 64)
		if t.kind != number || err != nil {
			return p.fail(t, "expected a whole number, found %s", describe(t))
		}
		numbers = append(numbers, n)
	}
	switch next := p.takeToken(); {
	case !next.is(")"):
		return p.fail(next, "expected ) after the arguments of compare, found %s", describe(next))
	case len(numbers) != 0 && len(numbers) != 1 && len(numbers) != 3:
		return p.fail(open, "compare has a selection, the number of values, and a start and an end in nanoseconds")
	case len(numbers) > 0 && (numbers[0] < 1 || numbers[0] > MaxMetricsTop):
		return p.fail(open, "the number of values of compare must be from 1 to %d", MaxMetricsTop)
	case len(numbers) == 3 && numbers[1] >= numbers[2]:
		return p.fail(open, "the end of compare must be after its start")
	}
	if len(numbers) > 0 {
		c.Top = int(numbers[0])
	}
	if len(numbers) == 3 {
		c.From, c.To = numbers[1], numbers[2]
	}
	return nil
}

// metricsField parses a field.
func (p *metricsParser) metricsField() (f MetricsField, err error) {
	t := p.takeToken()
	if err := p.countCondition(t); err != nil {
		return f, err
	}
	one, err := p.value(t)
	if err != nil {
		return f, err
	}
	if one.Place.Info().SearchOnly {
		return f, p.fail(t, "%s is only for conditions: its values are the values of other fields", t.text)
	}
	if one.Parent {
		one.Parent = false
		return f, p.fail(t, "attributes of the parent are only for conditions; write %s", FormatField(one.Field))
	}
	return MetricsField{one.Field, p.text[t.begin:t.end]}, nil
}

// fieldList parses the fields of by, in parentheses.
func (p *metricsParser) fieldList(by token) (fields []MetricsField, err error) {
	if t := p.takeToken(); !t.is("(") {
		return nil, p.fail(t, "expected ( after by")
	}
	for {
		f, err := p.metricsField()
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(fields, func(o MetricsField) bool { return o.Field == f.Field }) {
			fields = append(fields, f)
		}
		if !p.skip(",") {
			break
		}
	}
	if t := p.takeToken(); !t.is(")") {
		return nil, p.fail(t, "expected , or ) in by(...), found %s", describe(t))
	}
	if len(fields) > MaxMetricsFields {
		return nil, p.fail(by, "by(...) has %d fields; the maximum is %d", len(fields), MaxMetricsFields)
	}
	return fields, nil
}

// secondStages parses filters, topk and bottomk.
func (p *metricsParser) secondStages(e MetricsExpr) (MetricsExpr, error) {
	for {
		t := p.peek()
		switch {
		case isComparison(t) && !t.is("=~") && !t.is("!~"):
			p.takeToken()
			p.durations = true
			n, err := p.sum()
			p.durations = false
			if err != nil {
				return nil, err
			}
			value, constant := n.(MetricsNumber)
			if !constant {
				return nil, p.fail(t, "samples can be compared only with numbers")
			}
			e = MetricsFilter{e, opOf(t), value}
		case t.is("|"):
			p.takeToken()
			name := p.takeToken()
			if !name.isWord("topk") && !name.isWord("bottomk") {
				return nil, p.fail(name, "expected topk(...) or bottomk(...) after |, found %s", describe(name))
			}
			n, err := p.top()
			if err != nil {
				return nil, err
			}
			e = MetricsTop{e, n, name.text == "bottomk"}
		default:
			return e, nil
		}
		if err := p.operator(t); err != nil {
			return nil, err
		}
	}
}

// top parses the argument of topk or bottomk.
func (p *metricsParser) top() (int, error) {
	open, t := p.takeToken(), p.takeToken()
	n, err := strconv.Atoi(t.text)
	switch next := p.takeToken(); {
	case !open.is("("), t.kind != number, err != nil, !next.is(")"):
		return 0, p.fail(t, "expected the number of series in parentheses, such as topk(10)")
	case n < 1:
		return 0, p.fail(t, "limit must be greater than 0")
	case n > MaxMetricsTop:
		return 0, p.fail(t, "limit must be at most %d", MaxMetricsTop)
	}
	return n, nil
}

// Hint returns the value of the last hint with a name, or "".
func (q *MetricsQuery) Hint(name string) (value string) {
	for _, h := range q.Hints {
		if h.Name == name {
			value = h.Value
		}
	}
	return value
}
