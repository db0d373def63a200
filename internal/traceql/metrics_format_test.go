package traceql

import (
	"strconv"
	"strings"
)

// formatMetrics returns the text of a metrics query. Parsing it returns the same query.
func formatMetrics(q *MetricsQuery) string {
	var w metricsPrinter
	w.expr(q.Expr, metricsAny)
	var hints []string
	for _, h := range q.Hints {
		hints = append(hints, hintName(h.Name)+"="+quotedText(h.Value))
	}
	w.list(" with (", hints)
	return w.String()
}

// hintName returns the name of a hint, with quotes if needed.
func hintName(name string) string {
	begin, rest, dot := strings.Cut(name, ".")
	if !dot {
		return name
	}
	return begin + "." + keyText(rest)
}

type metricsPrinter struct{ strings.Builder }

// list writes texts between an opening text and ), or nothing if there are none.
func (w *metricsPrinter) list(open string, texts []string) {
	if len(texts) > 0 {
		w.WriteString(open + strings.Join(texts, ", ") + ")")
	}
}

// Places of an expression. The first allows every expression, the last only operands of * or /.
const (
	metricsAny = iota
	metricsSum
	metricsProduct
	metricsOperand
)

func (w *metricsPrinter) expr(e MetricsExpr, place int) {
	own := metricsOperand // needs no parentheses
	switch e := e.(type) {
	case MetricsMath:
		if own = metricsSum; e.Op == '*' || e.Op == '/' {
			own = metricsProduct
		}
	case MetricsStage, MetricsFilter, MetricsTop:
		own = metricsAny
	}
	if own < place {
		w.WriteByte('(')
		defer w.WriteByte(')')
	}
	switch e := e.(type) {
	case MetricsStage:
		w.stage(&e)
	case MetricsNumber:
		w.number(e)
	case MetricsMath:
		w.expr(e.Left, own)
		w.WriteString(" " + string(e.Op) + " ")
		w.expr(e.Right, own+1)
	case MetricsFilter:
		w.expr(e.Expr, metricsAny)
		w.WriteString(opText(e.Op))
		w.number(e.Value)
	case MetricsTop:
		w.expr(e.Expr, metricsAny)
		name := "topk"
		if e.Bottom {
			name = "bottomk"
		}
		w.WriteString(" | " + name + "(" + strconv.Itoa(e.N) + ")")
	}
}

func (w *metricsPrinter) number(n MetricsNumber) {
	text := strconv.FormatFloat(n.Value, 'f', -1, 64)
	if !n.Integer && !strings.Contains(text, ".") {
		text += ".0"
	}
	w.WriteString(text)
}

func (w *metricsPrinter) stage(s *MetricsStage) {
	w.WriteString(Format(s.Set) + " | " + string(s.Function) + "(" + s.Of.Text)
	for _, q := range s.Quantiles {
		w.WriteString(", " + strconv.FormatFloat(q, 'f', -1, 64))
	}
	if c := &s.Compare; s.Function == MetricsComparing {
		w.WriteString(Format(c.Selection) + ", " + strconv.Itoa(c.Top))
		if c.To > 0 {
			w.WriteString(", " + strconv.FormatUint(c.From, 10) + ", " + strconv.FormatUint(c.To, 10))
		}
	}
	w.WriteByte(')')
	var by []string
	for _, f := range s.By {
		by = append(by, f.Text)
	}
	w.list(" by (", by)
}
