package migrate

import (
	"fmt"
	"strings"

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
	// Components are the components of the program that will run the result. The result is checked
	// with them.
	Components []pipeline.Factory
	// Presets replace the programs of Jaeger 1.
	Presets []app.Preset
	// Service selects one of several configurations: the service of a compose file, or the name of
	// a manifest. Without it, each becomes a document.
	Service string
	// Process is true if the source is the environment of a process. Variables of other programs
	// are then not listed.
	Process bool
}

// Result is a configuration of this program.
type Result struct {
	From                        From // the format of the input
	YAML                        []byte
	Documents                   int
	Changed, Dropped, Decisions int // numbers of settings with comments
}

// Summary returns one sentence without a full stop.
func (r *Result) Summary() string {
	documents := ""
	if r.Documents > 1 {
		documents = fmt.Sprintf(", %d documents", r.Documents)
	}
	return fmt.Sprintf("%s%s: %d changed, %d dropped, %d to decide", names[r.From], documents, r.Changed, r.Dropped, r.Decisions)
}

// Migrate translates a configuration. The error says why the input is not usable.
func Migrate(in Input) (*Result, error) {
	if len(in.Source) > maxInput {
		return nil, fmt.Errorf("input too large: more than %d MiB", maxInput>>20)
	}
	parts, err := in.read()
	if err != nil {
		return nil, err
	}
	r := &Result{From: in.From, Documents: len(parts)}
	if in.From == Auto {
		r.From = parts[0].from()
	}
	for i, p := range parts {
		d, err := in.translate(p)
		if err != nil {
			return nil, err
		}
		if len(parts) > 1 && p.program == nil {
			d.head = strings.TrimSpace(fmt.Sprintf("# %s: one of %d configurations; pass --service to get it alone\n%s", p.name, len(parts), d.head))
		}
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

// translate returns the configuration that replaces a part.
func (in *Input) translate(p part) (*document, error) {
	if p.program != nil {
		return p.program.document(*in)
	}
	p.doc.remember()
	if in.From == Jaeger2 || in.From == Auto && p.from() == Jaeger2 {
		fromJaeger2(p.doc)
	}
	fromCollector(p.doc, in.Components)
	p.doc.listLost()
	return p.doc, nil
}
