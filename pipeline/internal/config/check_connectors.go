package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// checkConnectors reports connectors that are used on one side only or that lead back to
// themselves, and connectors whose configuration names pipelines that they do not feed or needs
// headers that receivers do not keep.
func (l *loader) checkConnectors() {
	for _, c := range l.components {
		if c.Key.Kind != pipeline.KindConnector {
			continue
		}
		l.checkSides(c)
		l.checkBranches(c)
		l.checkHeaders(c)
	}
	l.checkFlow()
}

// checkSides reports a connector that is an exporter in pipelines but a receiver in none, or vice
// versa.
func (l *loader) checkSides(c *Component) {
	fed, feeding := l.config.FedBy(c), l.config.feeding(c)
	switch {
	case len(fed) == 0 && len(feeding) > 0:
		l.problem(c.pos, c.path(), "is an exporter of %s but a receiver of no pipeline, so its spans would be lost; "+
			"list it in the receivers of another pipeline", names(feeding))
	case len(feeding) == 0 && len(fed) > 0:
		l.problem(c.pos, c.path(), "is a receiver of %s but an exporter of no pipeline, so there would be no spans; "+
			"list it in the exporters of another pipeline", names(fed))
	}
}

// checkBranches checks the pipelines that the configuration of a connector names.
func (l *loader) checkBranches(c *Component) {
	fed := l.config.FedBy(c)
	named := map[pipeline.ID]bool{}
	walkFields(reflect.ValueOf(c.Value).Elem(), c.path(), "", func(at []string, v reflect.Value, _ reflect.StructTag) {
		id, ok := v.Interface().(pipeline.PipelineID)
		if !ok || id.IsZero() {
			return
		}
		named[id.ID] = true
		switch {
		case slices.ContainsFunc(fed, func(p Pipeline) bool { return p.ID == id.ID }):
		case slices.ContainsFunc(l.config.Pipelines, func(p Pipeline) bool { return p.ID == id.ID }):
			l.problem(l.valuePos(at), at, "pipeline %s does not list %s as a receiver; add it there", id, c.Key.ID)
		default:
			l.problem(l.valuePos(at), at, "no pipeline is called %q%s", id, yamltree.Suggest(id.String(), ids(fed), c.Key.ID.String()+" feeds"))
		}
	})
	for _, p := range fed {
		if len(named) > 0 && !named[p.ID] {
			at := []string{"service", "pipelines", p.ID.String()}
			l.warn(l.tree.KeyPos(at...), at, "gets no spans from %s, whose configuration does not name the pipeline", c.Key)
		}
	}
}

// checkHeaders reports receivers and processors that do not keep the headers of requests although a
// connector behind them reads headers.
func (l *loader) checkHeaders(c *Component) {
	reader, ok := c.Value.(pipeline.HeaderReader)
	if !ok {
		return
	}
	keys := reader.ReadsHeaders()
	if len(keys) == 0 {
		return
	}
	var readers [][]string // paths of the keys
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		at := append(c.path(), strings.Split(keys[name], yamltree.Delim)...)
		l.checkJoinsHeaders(c, name, at)
		readers = append(readers, at)
	}
	at := slices.MinFunc(readers, func(a, b []string) int { return l.valuePos(a).Compare(l.valuePos(b)) })
	for _, r := range l.components {
		if r.Key.Kind == pipeline.KindReceiver && l.config.leadsTo(r, c) {
			l.checkKeepsHeaders(r, at)
		}
	}
}

// checkJoinsHeaders warns about processors in front of a connector that join requests with
// different values of a header.
func (l *loader) checkJoinsHeaders(c *Component, header string, reader []string) {
	for _, p := range l.config.Pipelines {
		if !slices.ContainsFunc(p.Exporters, func(e *Component) bool { return l.config.leadsTo(e, c) }) {
			continue
		}
		for _, m := range p.Processors {
			j, ok := m.Value.(pipeline.HeaderJoiner)
			if !ok {
				continue
			}
			key, kept := j.JoinsHeaders()
			if !slices.ContainsFunc(kept, func(name string) bool { return strings.EqualFold(name, header) }) {
				l.warn(l.valuePos(reader), reader, "reads the header %s, which is lost when %s joins requests that differ in it, in pipeline %s; "+
					"add it to %s", header, m.Key, p.ID, yamltree.Display(append(m.path(), strings.Split(key, yamltree.Delim)...)...))
			}
		}
	}
}

func (l *loader) checkKeepsHeaders(r *Component, reader []string) {
	keepers := map[string]bool{}
	walkFields(reflect.ValueOf(r.Value).Elem(), r.path(), "", func(at []string, v reflect.Value, _ reflect.StructTag) {
		if k, ok := v.Addr().Interface().(pipeline.HeaderKeeper); ok {
			keepers[yamltree.Join(at...)] = k.KeepsHeaders()
		}
	})
	for key, keeps := range keepers {
		if !keeps {
			l.problem(l.valuePos(reader), reader, "needs the headers of requests, which %s does not keep; set %s to true",
				r.Key, yamltree.Display(append(strings.Split(key, yamltree.Delim), "include_metadata")...))
		}
	}
	if len(keepers) == 0 {
		l.warn(l.valuePos(reader), reader, "never matches spans of %s, which have no headers", r.Key)
	}
}

// checkFlow reports pipelines that feed themselves through connectors.
func (l *loader) checkFlow() {
	done := map[pipeline.ID]bool{}
	var visit func(p Pipeline, way []string)
	visit = func(p Pipeline, way []string) {
		if i := slices.Index(way, p.ID.String()); i >= 0 {
			at := []string{"service", "pipelines", p.ID.String()}
			l.problem(l.tree.KeyPos(at...), at, "spans would go round in a circle: %s -> %s", strings.Join(way[i:], " -> "), p.ID)
			done[p.ID] = true
		}
		if done[p.ID] {
			return
		}
		for _, e := range p.Exporters {
			if e.Key.Kind != pipeline.KindConnector {
				continue
			}
			for _, fed := range l.config.FedBy(e) {
				visit(fed, append(way[:len(way):len(way)], p.ID.String(), e.Key.ID.String()))
			}
		}
		done[p.ID] = true
	}
	for _, p := range l.config.Pipelines {
		visit(p, nil)
	}
}

func ids(pipelines []Pipeline) []string {
	out := make([]string, len(pipelines))
	for i, p := range pipelines {
		out[i] = p.ID.String()
	}
	return out
}

func names(pipelines []Pipeline) string { return strings.Join(ids(pipelines), ", ") }
