package pipeline

import (
	"fmt"
	"io"
	"strings"
)

// writeGraph writes the pipelines in lines that people read: one for each pipeline, then what runs beside them.
func (a *App) writeGraph(w io.Writer) {
	for _, p := range a.config.pipelines {
		stages := []string{idList(p.receivers)}
		for _, c := range p.processors {
			stages = append(stages, c.key.id.String())
		}
		stages = append(stages, idList(p.exporters))
		fmt.Fprintf(w, "pipeline %s: %s\n  acknowledged spans are %s\n", p.id, strings.Join(stages, " -> "), a.acknowledged(p))
	}
	for _, c := range a.beside() {
		fmt.Fprintf(w, "%s\n", c.key)
	}
	for _, n := range a.graph.nodes {
		for _, r := range n.config.refs {
			fmt.Fprintf(w, "%s uses %s\n", n, r.target.key)
		}
	}
}

func idList(cs []*componentConfig) string {
	ids := make([]string, len(cs))
	for i, c := range cs {
		ids[i] = c.key.id.String()
	}
	return strings.Join(ids, ", ")
}

// beside returns what runs and is in no pipeline, in start order.
func (a *App) beside() []*componentConfig {
	in := map[componentKey]bool{}
	for _, p := range a.config.pipelines {
		for _, c := range p.members() {
			in[c.key] = true
		}
	}
	var out []*componentConfig
	for _, n := range a.graph.nodes {
		if !in[n.config.key] {
			out = append(out, n.config)
		}
	}
	return out
}

// writeDot writes the graph for Graphviz: solid arrows are the way of spans, dashed ones references.
func (a *App) writeDot(w io.Writer) {
	fmt.Fprint(w, "digraph tracing {\n  rankdir=LR;\n  node [shape=box];\n")
	for _, n := range a.graph.nodes {
		fmt.Fprintf(w, "  %q [label=%q];\n", n.String(), fmt.Sprintf("%s\n%s", n.config.key.kind, n.config.key.id))
	}
	for _, p := range a.config.pipelines {
		from := nodeNames(p.receivers, "")
		for _, c := range p.processors {
			to := nodeNames([]*componentConfig{c}, p.id.String())
			writeArrows(w, from, to, p.id)
			from = to
		}
		writeArrows(w, from, nodeNames(p.exporters, ""), p.id)
	}
	for _, n := range a.graph.nodes {
		for _, r := range n.config.refs {
			fmt.Fprintf(w, "  %q -> %q [style=dashed];\n", n.String(), r.target.key.String())
		}
	}
	fmt.Fprintln(w, "}")
}

// nodeNames returns what the graph calls the instances of components in a pipeline.
func nodeNames(cs []*componentConfig, pipeline string) []string {
	names := make([]string, len(cs))
	for i, c := range cs {
		names[i] = (&node{config: c, pipeline: pipeline}).String()
	}
	return names
}

func writeArrows(w io.Writer, from, to []string, pipeline ID) {
	for _, f := range from {
		for _, t := range to {
			fmt.Fprintf(w, "  %q -> %q [label=%q];\n", f, t, pipeline)
		}
	}
}
