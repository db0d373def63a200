package migrate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// errNoService is the error for a compose file without a configuration.
var errNoService = errors.New("compose file has no service with an image of Jaeger 1, such as jaegertracing/all-in-one; " +
	"translate the configuration file of Jaeger 2 by itself")

// readManifest returns the programs of Jaeger 1 in a compose file or a manifest of Kubernetes.
func readManifest(d *document) (programs []*jaeger1Program, err error) {
	if services := d.root.block("services"); services != nil {
		for _, name := range services.keys() {
			if s := services.block(name); s != nil {
				s.node.Style &^= yaml.FlowStyle
				p, err := readContainer(s, name, "command")
				if err != nil {
					return nil, fmt.Errorf("service %s: %w", name, err)
				}
				if p != nil {
					programs, d.taken = append(programs, p), append(d.taken, s.node)
				}
			}
		}
		return programs, nil
	}
	pod := podOf(d)
	var names []string // of containers that run programs of Jaeger 1
	for _, c := range pod.blocks("containers") {
		p, err := readContainer(c, firstOf(d.root.text("metadata", "name"), c.text("name")), "command", "args")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.title(), err)
		}
		if p != nil {
			programs, names, d.taken = append(programs, p), append(names, c.text("name")), append(d.taken, c.node)
		}
	}
	if len(programs) > 1 {
		for i, p := range programs {
			p.name += "/" + names[i]
		}
	}
	return programs, nil
}

// podOf returns the block with the containers of a manifest, or nil.
func podOf(d *document) *block {
	if d.root.text("kind") == "Pod" {
		return d.root.block("spec")
	}
	return d.root.block("spec", "template", "spec")
}

// blocks returns the maps in a list.
func (b *block) blocks(key string) (all []*block) {
	v := b.value(key)
	if v == nil || v.Kind != yaml.SequenceNode {
		return nil
	}
	for _, item := range v.Content {
		if item.Kind == yaml.MappingNode {
			all = append(all, &block{b.doc, item})
		}
	}
	return all
}

// readContainer returns the program of Jaeger 1 that a service or container runs, or nil. words are
// the keys with its command line.
func readContainer(c *block, name string, words ...string) (*jaeger1Program, error) {
	image := interpolate(c.text("image"))
	preset, ok := presetOf(image)
	if !ok || !strings.Contains(image, "jaeger") { // grafana/agent is another program
		return nil, nil
	}
	p := &jaeger1Program{name: name, preset: preset}
	for _, key := range words {
		args, err := argsOf(c, key)
		if err != nil {
			return nil, err
		}
		p.args = append(p.args, args...)
	}
	p.environ = variables(c, p)
	var rest []string
	for _, key := range c.keys() {
		if !slices.Contains([]string{"image", "name", "command", "args", "environment", "env", "env_file", "envFrom"}, key) {
			rest = append(rest, key)
		}
	}
	if len(rest) > 0 {
		p.lists = append(p.lists, listing{dropped, rest, "settings of the container"})
	}
	return p, nil
}

// argsOf returns the words of a command line, which is a list or a text.
func argsOf(c *block, key string) (args []string, err error) {
	v := c.value(key)
	if v != nil && v.Kind == yaml.ScalarNode && v.ShortTag() != "!!null" {
		args, err = shellWords(v.Value)
	} else {
		args = slices.Clone(c.texts(key))
	}
	for i := range args {
		args[i] = interpolate(args[i])
	}
	if len(args) > 0 {
		if _, isProgram := presetOf(args[0]); isProgram {
			args = args[1:]
		}
	}
	return args, err
}

// variables returns the variables of a container. Variables whose values are in other files become
// decisions.
func variables(c *block, p *jaeger1Program) (environ []string) {
	elsewhere := func(items []string, reason string) {
		if len(items) > 0 {
			p.lists = append(p.lists, listing{decide, items, reason})
		}
	}
	for _, key := range []string{"env_file", "envFrom"} {
		if c.has(key) {
			elsewhere([]string{strings.TrimSpace(key + " " + strings.Join(c.texts(key), ", "))},
				"not read; rerun migrate with its variables in the file")
		}
	}
	for _, v := range c.blocks("env") {
		others := slices.DeleteFunc(v.keys(), func(key string) bool { return key == "name" || key == "value" })
		if len(others) > 0 {
			elsewhere([]string{v.text("name")}, strings.Join(others, ", ")+" is not read; rerun migrate with a value, or set the key by hand")
			continue
		}
		environ = append(environ, v.text("name")+"="+v.text("value"))
	}
	env := c.block("environment")
	if env == nil { // a list of NAME=value
		for _, item := range c.texts("environment") {
			if !strings.Contains(item, "=") {
				elsewhere([]string{item}, "the value is in the shell that starts the service; rerun migrate with NAME=value")
				continue
			}
			environ = append(environ, interpolate(item))
		}
		return environ
	}
	for _, name := range env.keys() {
		environ = append(environ, name+"="+interpolate(env.text(name)))
	}
	return environ
}

// interpolation matches variables that Docker Compose replaces, and their defaults.
var interpolation = regexp.MustCompile(`\$\$|\$\{(\w+)(?::?-([^}]*)|:?\?[^}]*)?\}`)

// interpolate replaces variables of Docker Compose with their defaults. A variable without a
// default stays, so that the program reads it at start.
func interpolate(text string) string {
	return interpolation.ReplaceAllStringFunc(text, func(found string) string {
		m := interpolation.FindStringSubmatch(found)
		switch {
		case found == "$$":
			return "$"
		case strings.Contains(found, "-"):
			return m[2]
		}
		return found
	})
}
