package host

import (
	"fmt"
	"io"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
)

// WriteGraph writes the graph as text: a line for each pipeline, then components outside of
// pipelines, then references.
func (a *App) WriteGraph(w io.Writer) {
	c, g := a.current()
	for _, p := range c.Pipelines {
		stages := []string{strings.Join(ids(p.Receivers), ", ")}
		stages = append(stages, ids(p.Processors)...)
		stages = append(stages, strings.Join(ids(p.Exporters), ", "))
		fmt.Fprintf(w, "pipeline %s: %s\n  acknowledged %s are %s\n", p.ID, strings.Join(stages, " -> "), signalOf(p).Items(), a.Durability(p))
	}
	for _, m := range besidePipelines(c, g) {
		fmt.Fprintf(w, "%s\n", m.Key)
	}
	for _, n := range g.nodes {
		for _, r := range n.config.References {
			fmt.Fprintf(w, "%s uses %s\n", n, r.Target.Key)
		}
	}
}

// besidePipelines returns the components outside of pipelines, in start order.
func besidePipelines(c *config.Config, g *graph) []*config.Component {
	in := map[config.Key]bool{}
	for _, p := range c.Pipelines {
		for _, m := range p.Members() {
			in[m.Key] = true
		}
	}
	var out []*config.Component
	for _, n := range g.nodes {
		if !in[n.config.Key] {
			out = append(out, n.config)
		}
	}
	return out
}

// WriteDot writes the graph for Graphviz. Solid arrows are the flow of spans, dashed arrows are
// references.
func (a *App) WriteDot(w io.Writer) {
	c, g := a.current()
	fmt.Fprint(w, "digraph tracing {\n  rankdir=LR;\n  node [shape=box];\n")
	for _, n := range g.nodes {
		name := n.config.Key.ID.String()
		if n.edge != nil {
			name = n.deliveryName().Name()
		}
		fmt.Fprintf(w, "  %q [label=%q];\n", n.String(), fmt.Sprintf("%s\n%s", n.config.Key.Kind, name))
	}
	for _, p := range c.Pipelines {
		from := nodeNames(p.Receivers, p)
		for _, m := range p.Processors {
			to := nodeNames([]*config.Component{m}, p)
			writeArrows(w, from, to, p.ID)
			from = to
		}
		writeArrows(w, from, nodeNames(p.Exporters, p), p.ID)
	}
	for _, n := range g.nodes {
		for _, r := range n.config.References {
			fmt.Fprintf(w, "  %q -> %q [style=dashed];\n", n.String(), r.Target.Key.String())
		}
	}
	fmt.Fprintln(w, "}")
}

// nodeNames returns the names of the nodes of components in a pipeline.
func nodeNames(cs []*config.Component, p config.Pipeline) []string {
	names := make([]string, len(cs))
	for i, c := range cs {
		n := &node{config: c}
		switch c.Key.Kind {
		case pipeline.KindProcessor:
			n.pipeline = p.ID.String()
		case pipeline.KindExporter:
			n.signal = signalOf(p)
		}
		names[i] = n.String()
	}
	return names
}

func writeArrows(w io.Writer, from, to []string, p pipeline.ID) {
	for _, f := range from {
		for _, t := range to {
			fmt.Fprintf(w, "  %q -> %q [label=%q];\n", f, t, p)
		}
	}
}
