package migrate

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/tracing-backend/tracing/internal/foreign"
	"github.com/tracing-backend/tracing/pipeline"
)

// fromCollector translates a Collector configuration for a program with these components.
func fromCollector(d *document, components []pipeline.Factory) {
	c, withLogs := &collector{d, types{}}, types{}
	for _, f := range components {
		c.types.addFactory(f)
		if f.TakesLogs() {
			withLogs.addFactory(f)
		}
	}
	metricsListener(d)
	foreign.Rewrite(c, c.types.has, withLogs.has)
	if len(components) == 0 {
		return
	}
	c.renameAliases()
	c.dropUnknown()
	c.completePipelines()
}

// types maps the names of component types, by section, to their names in this program.
type types map[string]map[string]string

func (t types) addFactory(f pipeline.Factory) {
	section := f.Kind().Section()
	if t[section] == nil {
		t[section] = map[string]string{}
	}
	for _, name := range append([]string{f.Type()}, f.Aliases()...) {
		t[section][name] = f.Type()
	}
}

func (t types) has(section, typ string) bool { return t[section][typ] != "" }

// collector is a document to which the rules for Collector files are applied.
type collector struct {
	*document
	types types
}

var _ foreign.File = (*collector)(nil)

// node returns the node at path, or nil. The key of a list item is its index.
func (c *collector) node(path []string) *yaml.Node {
	n := c.root.node
	for _, key := range path {
		switch {
		case n == nil:
			return nil
		case n.Kind == yaml.MappingNode:
			n = (&block{c.document, n}).value(key)
		case n.Kind == yaml.SequenceNode:
			i, err := strconv.Atoi(key)
			items := itemsOf(n)
			if err != nil || i < 0 || i >= len(items) {
				return nil
			}
			n = items[i]
		default:
			return nil
		}
	}
	return n
}

// parent returns the block that holds the last key of path, and that key.
func (c *collector) parent(path []string) (b *block, key string) {
	last := len(path) - 1
	return c.root.block(path[:last]...), path[last]
}

// Keys implements foreign.File.
func (c *collector) Keys(path ...string) []string {
	if n := c.node(path); n != nil && n.Kind == yaml.MappingNode {
		return (&block{c.document, n}).keys()
	}
	return nil
}

// Has implements foreign.File.
func (c *collector) Has(path ...string) bool { return c.node(path) != nil }

// Text implements foreign.File.
func (c *collector) Text(path ...string) string {
	if n := c.node(path); n != nil && n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" {
		return n.Value
	}
	return ""
}

// Texts implements foreign.File.
func (c *collector) Texts(path ...string) (texts []string) {
	n := c.node(path)
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	for _, item := range itemsOf(n) {
		texts = append(texts, item.Value)
	}
	return texts
}

// Drop implements foreign.File.
func (c *collector) Drop(path []string, reason string, with ...[]string) {
	b, key := c.parent(path)
	if reason == "" {
		b.remove(key)
	} else {
		b.drop(key, "%s", reason)
	}
	for _, w := range with {
		b, key := c.parent(w)
		b.drop(key, "only used by %s", strings.Join(path, "."))
	}
}

// Omit implements foreign.File.
func (c *collector) Omit(path []string) {
	b, key := c.parent(path)
	b.drop(key, "always so here")
}

// Replaced implements foreign.File.
func (c *collector) Replaced(path []string, reason string) {
	b, key := c.parent(path)
	b.note(changed, key, "%s: %s", key, reason)
	b.remove(key)
}

// Fallback implements foreign.File: it makes the Collector's default explicit.
func (c *collector) Fallback(path []string, theirs, here, _ string) {
	c.Set(path, theirs, "the default of the Collector; the default here is "+here)
}

// Move implements foreign.File.
func (c *collector) Move(from, to []string, _ string) {
	b, key := c.parent(from)
	value := b.value(key)
	last := len(to) - 1
	b.remove(key)
	into := c.root.ensure(to[:last]...)
	into.setNode(to[last], value)
	was := key
	if key == to[last] {
		was = strings.Join(from, ".")
	}
	into.note(changed, to[last], "%s was %s", to[last], was)
}

// Copy implements foreign.File.
func (c *collector) Copy(from, to []string, prefix, reason string) {
	c.Set(to, prefix+c.Text(from...), reason)
	c.markListed(c.node(from))
}

// Set implements foreign.File.
func (c *collector) Set(path []string, text, reason string) {
	last := len(path) - 1
	b := c.root.ensure(path[:last]...)
	b.setText(path[last], text)
	if reason != "" {
		b.note(changed, path[last], "%s", reason)
	}
}

// SetList implements foreign.File.
func (c *collector) SetList(path, texts []string, reason string) {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
	for _, text := range texts {
		list.Content = append(list.Content, textNode(text))
	}
	last := len(path) - 1
	b := c.root.ensure(path[:last]...)
	b.setNode(path[last], list)
	if reason != "" {
		b.note(changed, path[last], "%s", reason)
	}
}

// Replace implements foreign.File.
func (c *collector) Replace(list []string, item string, by ...string) {
	b, key := c.parent(list)
	switch {
	case !b.replaceItemBy(key, item, by...):
	case len(by) == 0:
		b.note(dropped, key, "%s", item)
	default:
		b.note(changed, key, "%s was %s", strings.Join(by, ", "), item)
	}
}

// Refuse implements foreign.File.
func (c *collector) Refuse(path []string, problem string) {
	if len(path) == 2 && path[0] != extensions {
		c.leaveOut(path[0], path[1], problem)
		return
	}
	b, key := c.parent(path)
	if foreign.Distributes(path[0], typeOf(path[1])) {
		return // stays as it is, and the check of the result reports it
	}
	b.decideOn(key, "%s", problem)
}

// leaveOut removes a component that this program lacks.
func (c *collector) leaveOut(section, id, problem string) {
	c.root.block(section).decideOn(id, "%s", problem)
	lists := []string{section}
	if section == connectors {
		lists = []string{receivers, exporters}
	}
	for _, list := range lists {
		c.unlistComponent(list, id)
	}
}

// renameAliases gives components the names of their types in this program.
func (c *collector) renameAliases() {
	for _, section := range []string{receivers, processors, exporters, extensions} {
		for _, id := range c.root.block(section).keys() {
			typ := c.types[section][typeOf(id)]
			if typ == "" || typ == typeOf(id) {
				continue
			}
			to := typ + nameOf(id)
			if c.root.has(section, to) {
				to = typ + "/" + strings.ReplaceAll(id, "/", "-")
			}
			c.renameComponent(section, id, to)
		}
	}
}

// dropUnknown leaves out components of types that this program lacks, except types without which
// spans would reach other exporters: the result stays invalid until the user decides about these.
func (c *collector) dropUnknown() {
	for _, section := range []string{receivers, processors, exporters, connectors, extensions} {
		for _, id := range c.root.block(section).keys() {
			if c.types.has(section, typeOf(id)) || foreign.Distributes(section, typeOf(id)) {
				continue
			}
			hint := foreign.Hint(section, typeOf(id))
			if hint == "" {
				hint = "there is no such component"
			}
			instead := "a custom build can add it, see docs/collector-components.md"
			if section == connectors {
				instead = foreign.InFront
			}
			c.leaveOut(section, id, hint+"; "+instead)
		}
	}
}

// completePipelines adds a receiver or an exporter to pipelines that have none left.
func (c *collector) completePipelines() {
	for _, name := range c.Keys("service", "pipelines") {
		p := c.root.block("service", "pipelines", name)
		if typeOf(name) != "traces" || p == nil {
			continue
		}
		if len(p.texts(exporters)) == 0 {
			c.addMember(p, exporters, "disk", "", "disk stores the spans, because the pipeline has no exporter left; the query extension reads them")
		}
		if len(p.texts(receivers)) == 0 {
			c.addMember(p, receivers, "otlp", "protocols: {grpc: , http: }", "otlp receives the spans, because the pipeline has no receiver left")
		}
	}
}

// addMember lists a component in a pipeline, and adds it to its section if it is not there.
func (c *collector) addMember(p *block, section, id, settings, reason string) {
	if !c.root.has(section, id) {
		b := c.root.ensure(section)
		if settings == "" {
			b.setNode(id, emptyNode())
		} else {
			b.set(id, settings)
		}
		b.note(changed, id, "%s", reason)
	}
	p.addItem(section, id)
	p.note(changed, section, "%s", reason)
}

// metricsListener makes the `admin` extension, which serves /metrics, listen where the Collector
// serves its own metrics.
func metricsListener(d *document) {
	address := metricsAddress(&collector{document: d})
	if address == "" || len(d.componentsOf(extensions, "admin")) > 0 {
		return
	}
	admin := d.addExtension("admin")
	admin.setText("endpoint", address)
	admin.note(changed, "endpoint", "the address of service.telemetry.metrics; admin serves metrics there, and also health, "+
		"status and profiles")
}

// metricsAddress returns where the Collector serves its own metrics if that is configured, or "".
func metricsAddress(c *collector) string {
	at := []string{"service", "telemetry", "metrics"}
	if a := c.Text(append(at, "address")...); a != "" {
		return a
	}
	for i := 0; c.Has(append(at, "readers", strconv.Itoa(i))...); i++ {
		prometheus := append(at, "readers", strconv.Itoa(i), "pull", "exporter", "prometheus")
		if port := c.Text(append(prometheus, "port")...); port != "" {
			host := c.Text(append(prometheus, "host")...)
			if host == "" {
				host = "localhost"
			}
			if strings.HasPrefix(host, "$") {
				return fmt.Sprintf("%s:%s", host, port)
			}
			return net.JoinHostPort(host, port)
		}
	}
	return ""
}
