package config

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// loadService loads the service section and resolves the members of pipelines.
func (l *loader) loadService() {
	path := []string{"service"}
	l.decode(&l.config.Service, path)
	l.members(pipeline.KindExtension, l.config.Service.Extensions, "service", "extensions")
	if len(l.tree.Map("service", "pipelines")) == 0 && len(l.config.Service.Extensions) == 0 && len(l.problems) == 0 {
		pos := l.tree.KeyPos("service")
		l.problem(pos, nil, "nothing to run: service.pipelines needs at least one pipeline, for example "+
			"traces: {receivers: [%s], exporters: [%s]}", l.options.firstType(pipeline.KindReceiver), l.options.firstType(pipeline.KindExporter))
	}
	for _, name := range l.tree.Keys("service", "pipelines") {
		l.loadPipeline(name)
	}
}

func (l *loader) loadPipeline(name string) {
	at := []string{"service", "pipelines", name}
	pos := l.tree.KeyPos(at...)
	id, err := pipeline.ParseID(name)
	switch {
	case err != nil:
		l.problem(pos, at[:2], "%v", err)
		return
	case id.Type == "metrics" || id.Type == "profiles":
		l.problem(pos, at[:2], "%s pipelines are not supported, only traces and logs; delete %s", id.Type, pos.Lines())
		return
	case id.Type != typeTraces && id.Type != typeLogs:
		l.problem(pos, at[:2], "pipeline %q has an unknown type; write traces, traces/%s, logs or logs/%[2]s", name, id.Type)
		return
	}
	m := l.config.Service.Pipelines[name]
	p := Pipeline{ID: id}
	p.Receivers = l.members(pipeline.KindReceiver, m.Receivers, append(at, "receivers")...)
	p.Processors = l.members(pipeline.KindProcessor, m.Processors, append(at, "processors")...)
	p.Exporters = l.members(pipeline.KindExporter, m.Exporters, append(at, "exporters")...)
	for _, need := range []struct {
		kind  pipeline.Kind
		given int
	}{{pipeline.KindReceiver, len(m.Receivers)}, {pipeline.KindExporter, len(m.Exporters)}} {
		if need.given == 0 && !l.isNotAList(append(at, need.kind.Section())) {
			l.problem(pos, at, "needs at least one %s", need.kind)
		}
	}
	if p.Logs() {
		l.checkLogs(p, at)
	}
	l.config.Pipelines = append(l.config.Pipelines, p)
}

// checkLogs reports members of a pipeline of log records that work only with spans.
func (l *loader) checkLogs(p Pipeline, at []string) {
	for _, c := range p.Members() {
		if c.Factory.TakesLogs() {
			continue
		}
		kind := c.Key.Kind
		if slices.Contains(p.Receivers, c) {
			kind = pipeline.KindReceiver
		} else if slices.Contains(p.Exporters, c) {
			kind = pipeline.KindExporter
		}
		path := append(slices.Clone(at), kind.Section())
		l.problem(l.valuePos(path), path, "%s works only with spans; %s of log records: %s", c.Key, kind.Section(), l.options.typesWithLogs(kind))
	}
}

// isNotAList reports whether there is another value in place of a list. decode has reported that.
func (l *loader) isNotAList(path []string) bool {
	switch v := l.tree.Get(path...).(type) {
	case yamltree.Scalar:
		return !v.Empty
	case map[string]any:
		return true
	}
	return false
}

// members returns the components of a list of ids.
func (l *loader) members(kind pipeline.Kind, ids []pipeline.ID, path ...string) []*Component {
	var out []*Component
	seen := map[pipeline.ID]bool{}
	for i, id := range ids {
		if id.IsZero() {
			continue // decode has reported it
		}
		pos := l.tree.ValuePos(below(path, fmt.Sprint(i))...)
		c, ok := l.config.components[Key{kind, id}]
		joins := kind == pipeline.KindReceiver || kind == pipeline.KindExporter
		if !ok && joins {
			c, ok = l.config.components[Key{pipeline.KindConnector, id}]
		}
		switch {
		case seen[id]:
			l.problem(pos, path, "%s %q is listed twice", kind, id)
		case ok:
			out = append(out, c)
			if kind == pipeline.KindExporter {
				l.checkWrites(c, pos, path)
			}
		case l.broken[Key{kind, id}] || joins && l.broken[Key{pipeline.KindConnector, id}]: // reported where it is configured
		default:
			l.problem(pos, path, "%s %q is not configured%s", kind, id, yamltree.Suggest(id.String(), l.configured(kind), "configured are"))
		}
		seen[id] = true
	}
	return out
}

// checkWrites reports an exporter of a pipeline that cannot write spans with its settings.
func (l *loader) checkWrites(c *Component, pos yamltree.Pos, path []string) {
	if err := c.lacks(reflect.TypeFor[pipeline.Consumer]()); err != nil {
		l.problem(pos, path, "%s cannot write spans: %v", c.Key, err)
	}
}

// configured returns the ids of all components of a kind.
func (l *loader) configured(kind pipeline.Kind) []string {
	var ids []string
	for _, c := range l.components {
		if c.Key.Kind == kind {
			ids = append(ids, c.Key.ID.String())
		}
	}
	return ids
}
