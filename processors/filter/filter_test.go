package filter

import (
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/filterprocessor"
	"go.opentelemetry.io/collector/confmap"
	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestExplain(t *testing.T) {
	for name, c := range map[string]struct {
		config map[string]any
		want   []string
	}{
		"traces": {map[string]any{"traces": map[string]any{"span": []any{`name == "b"`}, "resource": []any{`attributes["a"] == 1`},
			"spanevent": []any{"true"}}}, []string{`resource: attributes["a"] == 1`, `span: name == "b"`}},
		"trace_conditions": {map[string]any{"trace_conditions": []any{map[string]any{"context": "span", "conditions": []any{`span.name == "b"`}}}},
			[]string{`span: span.name == "b"`}},
		"none": {map[string]any{}, nil},
	} {
		config := filterprocessor.NewFactory().CreateDefaultConfig()
		if err := confmap.NewFromStringMap(c.config).Unmarshal(config); err != nil {
			t.Fatal(err)
		}
		s := explain(config, sampling.TraceID{1})
		var got []string
		for _, r := range s.Rules {
			got = append(got, r.Name+": "+r.Text)
		}
		if len(got) != len(c.want) || (len(got) > 0) != (s.Verdict == sampling.Depends) {
			t.Errorf("%s: %q %s", name, got, s.Verdict)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %q, want %q", name, got[i], c.want[i])
			}
		}
	}
}
