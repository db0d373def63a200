package scan

import (
	"math"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestPossibleKinds checks that no kind of value is ruled out that has a matching value.
func TestPossibleKinds(t *testing.T) {
	values := []otlpdata.Value{{}, otlpdata.StringValue(""), otlpdata.StringValue("x"), otlpdata.StringValue("1"), otlpdata.BoolValue(true),
		otlpdata.IntValue(math.MinInt64), otlpdata.IntValue(1), otlpdata.DoubleValue(math.NaN()), otlpdata.DoubleValue(math.Inf(-1)),
		otlpdata.DoubleValue(1e300), otlpdata.DoubleValue(math.Copysign(0, -1)), otlpdata.EncodedValue(otlpdata.ValueBytes, "\x00\xff"),
		otlpdata.EncodedValue(otlpdata.ValueBytes, ""), otlpdata.EncodedValue(otlpdata.ValueArray, ""),
		otlpdata.EncodedValue(otlpdata.ValueMap, "")}
	ruledOut := 0
	for _, v := range values {
		for _, other := range values {
			for op := tracestore.Eq; op <= tracestore.Exists; op++ {
				for _, l := range []tracestore.Literal{tracestore.Text(other.AsString()), tracestore.Number(1), tracestore.Number(math.NaN())} {
					c := newCond(tracestore.Cond{Field: tracestore.Field{Key: "k"}, Op: op, Value: l})
					possible := c.possible(v.Kind())
					if c.Holds(v) && (!possible || c.onlyText && v.Kind() != otlpdata.ValueString) {
						t.Errorf("%q of kind %d matches op %d of %+v but possible rules it out", v.AsString(), v.Kind(), op, l)
					}
					if !possible {
						ruledOut++
					}
				}
			}
		}
	}
	if ruledOut == 0 {
		t.Error("possible never ruled out a kind")
	}
}

// TestEvaluateDuration checks the verdict for all durations up to a bound against each of them.
func TestEvaluateDuration(t *testing.T) {
	numbers := []float64{math.Inf(-1), -1, 0, 0.5, 1, 1.5, 2, 3, 4, 1e30, math.NaN()}
	for _, n := range numbers {
		for op := tracestore.Eq; op <= tracestore.Exists; op++ {
			c := newCond(tracestore.Cond{Field: tracestore.Field{Place: tracestore.Duration}, Op: op, Value: tracestore.Number(n)})
			v := evaluateDuration(&c, 3)
			for d := 1.0; d <= 3; d++ {
				if holds := c.Holds(otlpdata.DoubleValue(d)); v != depends && v != verdictOf(holds) {
					t.Errorf("op %d, %v: verdict %d for all durations, but %t for %v", op, n, v, holds, d)
				}
			}
		}
	}
}
