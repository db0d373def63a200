package config

import (
	"encoding"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// PrintOptions are the parameters of Print.
type PrintOptions struct {
	Origin   bool // add the source of each value as a comment
	Defaults bool // include values that are not set
	Written  bool // leave variables and files as they are written
	// Durability returns where acknowledged spans of a pipeline are, for a comment above it.
	Durability func(Pipeline) string
}

// Print writes the configuration as YAML. Loading the output results in the same configuration,
// except that secrets, including those in URLs, are masked.
func (c *Config) Print(w io.Writer, o PrintOptions) error {
	p := &printer{tree: c.tree, origin: o.Origin, defaults: o.Defaults, written: o.Written}
	root := block()
	for _, kind := range kinds {
		section := block()
		for _, id := range p.tree.Keys(kind.Section()) {
			for _, m := range c.components {
				if m.Key.Kind == kind && m.Key.ID.String() == id {
					section.add(id, p.value(reflect.ValueOf(m.Value).Elem(), []string{kind.Section(), id}))
				}
			}
		}
		if len(section.Content) > 0 {
			root.add(kind.Section(), section)
		}
	}
	service := p.value(reflect.ValueOf(&c.Service).Elem(), []string{"service"})
	root.add("service", service)
	for _, pipe := range c.Pipelines {
		if key := service.find("pipelines", pipe.ID.String()); key != nil {
			items := "spans"
			if pipe.Logs() {
				items = "log records"
			}
			key.HeadComment = "acknowledged " + items + " are " + o.Durability(pipe)
		}
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode((*yaml.Node)(root)); err != nil {
		return fmt.Errorf("cannot print configuration: %w", err)
	}
	return enc.Close()
}

// PrintRunning returns the configuration with the names of environment variables and files instead
// of their values. Secrets are masked.
func (c *Config) PrintRunning(durability func(Pipeline) string) (string, error) {
	var out strings.Builder
	if err := c.Print(&out, PrintOptions{Written: true, Durability: durability}); err != nil {
		return "", err
	}
	return c.tree.RedactText(out.String()), nil
}

type printer struct {
	tree     *yamltree.Tree
	origin   bool
	defaults bool
	written  bool
}

// yamlNode is a yaml.Node with methods to build it.
type yamlNode yaml.Node

func block() *yamlNode { return &yamlNode{Kind: yaml.MappingNode} }

// add adds a key, unless its value is nil.
func (n *yamlNode) add(key string, value *yamlNode) {
	if value != nil {
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, (*yaml.Node)(value))
	}
}

// find returns the node of a key, or nil.
func (n *yamlNode) find(path ...string) *yaml.Node {
	var key *yaml.Node
	at := (*yaml.Node)(n)
	for _, want := range path {
		i := 0
		for i < len(at.Content) && at.Content[i].Value != want {
			i += 2 // keys alternate with values
		}
		if i >= len(at.Content) {
			return nil
		}
		key, at = at.Content[i], at.Content[i+1]
	}
	return key
}

// value returns the node for a value, or nil if the value is left out.
func (p *printer) value(v reflect.Value, path []string) *yamlNode {
	given := p.tree.Has(path...)
	if !given && !p.defaults {
		return nil
	}
	if c, ok := v.Addr().Interface().(yamltree.TreeConfig); ok {
		return p.treeConfig(c, path)
	}
	if o, ok := v.Addr().Interface().(optional); ok {
		inner, on := o.Block()
		if !on {
			return nil
		}
		return p.value(reflect.ValueOf(inner).Elem(), path)
	}
	if isLeaf(v) {
		return p.leaf(v, path, given)
	}
	switch v.Kind() {
	case reflect.Struct:
		n := block()
		p.fields(n, v, path)
		return p.commented(n, path, len(n.Content) == 0)
	case reflect.Map:
		return p.mapping(v, path)
	case reflect.Slice:
		return p.list(v, path)
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return p.value(v.Elem(), path)
	}
	return nil
}

func (p *printer) fields(n *yamlNode, v reflect.Value, path []string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key := f.Tag.Get("yaml")
		switch {
		case f.Anonymous && key == "":
			p.fields(n, v.Field(i), path)
		case key != "" && key != "-":
			n.add(key, p.value(v.Field(i), below(path, key)))
		}
	}
}

func (p *printer) mapping(v reflect.Value, path []string) *yamlNode {
	n := block()
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range keys {
		n.add(k.String(), p.value(addressable(v.MapIndex(k)), below(path, k.String())))
	}
	return p.commented(n, path, len(n.Content) == 0)
}

// list returns the node of a list: a list of scalars on one line, with one comment.
func (p *printer) list(v reflect.Value, path []string) *yamlNode {
	n := &yamlNode{Kind: yaml.SequenceNode}
	scalars := true
	for i := range v.Len() {
		scalars = scalars && isLeaf(v.Index(i))
		item := p.value(v.Index(i), below(path, strconv.Itoa(i)))
		if item == nil {
			item = block()
			item.Style = yaml.FlowStyle
		}
		if scalars {
			item.LineComment = ""
		}
		n.Content = append(n.Content, (*yaml.Node)(item))
	}
	return p.commented(n, path, scalars)
}

// leaf returns the node of a scalar. If the value is set, it has the text as written, because `10%`
// says more than the resulting number of bytes.
func (p *printer) leaf(v reflect.Value, path []string, given bool) *yamlNode {
	text := leafText(v)
	if s, ok := p.tree.Get(path...).(yamltree.Scalar); ok && !isSecret(v) {
		text = pipeline.MaskURLs(s.Text)
	}
	if !given && !readsBack(v.Type(), text) {
		return nil
	}
	n := textNode(text)
	if s, ok := p.tree.Get(path...).(yamltree.Scalar); ok && p.written && s.Written != "" && !isSecret(v) {
		n.Value = s.Written
		return p.commented(n, path, true)
	}
	_, size := v.Interface().(pipeline.ByteSize)
	if _, isText := v.Addr().Interface().(encoding.TextUnmarshaler); size || !isText && v.Kind() != reflect.String {
		n.Tag = "" // numbers and bools are not quoted
	}
	return p.commented(n, path, true)
}

func isSecret(v reflect.Value) bool {
	_, secret := v.Interface().(pipeline.Secret)
	return secret
}

// readsBack reports whether text can be parsed as type t. Some defaults have no text.
func readsBack(t reflect.Type, text string) bool {
	u, ok := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	return !ok || u.UnmarshalText([]byte(text)) == nil
}

// commented returns n on one line, if oneLine, with the source of the value as a comment.
func (p *printer) commented(n *yamlNode, path []string, oneLine bool) *yamlNode {
	if !oneLine {
		return n
	}
	if n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle
	}
	if p.origin {
		n.LineComment = "default"
		if p.tree.Has(path...) {
			n.LineComment = p.tree.ValuePos(path...).String()
		}
	}
	return n
}
