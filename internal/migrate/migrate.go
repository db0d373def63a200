package migrate

import (
	"errors"
	"fmt"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
)

// From is the format of the input.
type From string

// Formats of the input.
const (
	Auto    From = "auto" // detected
	OtelCol From = "otelcol"
	Jaeger1 From = "jaeger1"
	Jaeger2 From = "jaeger2"
)

// names of the formats, for messages.
var names = map[From]string{
	OtelCol: "an OpenTelemetry Collector configuration",
	Jaeger1: "flags or environment variables of Jaeger 1",
	Jaeger2: "a Jaeger 2 configuration",
}

// Input is a configuration of another tool.
type Input struct {
	From   From
	Source []byte
	// Components are those of the program that will run the result. The result is checked with
	// them.
	Components []pipeline.Factory
	// Presets take the place of programs of Jaeger 1.
	Presets []app.Preset
	// Service selects one service of a compose file. Without it, each program of Jaeger 1 becomes a
	// document.
	Service string
}

// Result is a configuration of this program.
type Result struct {
	From                        From // the format of the input
	YAML                        []byte
	Changed, Dropped, Decisions int // numbers of comments
}

// Summary returns one sentence without a full stop.
func (r *Result) Summary() string {
	return fmt.Sprintf("%s: %d changed, %d dropped, %d to decide", names[r.From], r.Changed, r.Dropped, r.Decisions)
}

// Migrate translates a configuration. The error says why the input is not usable.
func Migrate(in Input) (*Result, error) {
	if len(in.Source) > maxInput {
		return nil, fmt.Errorf("input too large: more than %d MiB", maxInput>>20)
	}
	text := string(in.Source)
	if in.From == Auto {
		var err error
		if in.From, err = detect(text); err != nil {
			return nil, err
		}
	}
	docs, err := translate(in)
	if err != nil {
		return nil, err
	}
	r := &Result{From: in.From}
	for i, d := range docs {
		out, err := d.check(in.Components)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			r.YAML = append(r.YAML, "---\n"...)
		}
		r.YAML = append(r.YAML, out...)
		r.Changed += d.count(changed)
		r.Dropped += d.count(dropped)
		r.Decisions += d.count(decide)
	}
	return r, nil
}

func translate(in Input) ([]*document, error) {
	if in.From == Jaeger1 {
		return fromJaeger1(in)
	}
	d, err := openDocument(string(in.Source))
	if err != nil {
		return nil, err
	}
	if in.From == Jaeger2 {
		fromJaeger2(d)
	}
	fromCollector(d, in.Components)
	return []*document{d}, nil
}

// detect returns the format of a text.
func detect(text string) (From, error) {
	d, err := openDocument(text)
	switch {
	case err == nil && isJaeger2(d):
		return Jaeger2, nil
	case err == nil && isConfiguration(d):
		return OtelCol, nil
	case isJaeger1(text):
		return Jaeger1, nil
	case err == nil:
		err = errors.New("no sections such as receivers, exporters and service")
	}
	return "", fmt.Errorf("format not recognized: %w; say which one it is with --from otelcol, jaeger1 or jaeger2", err)
}
