package pipeline

import (
	"encoding"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/tracing-backend/tracing/pipeline/internal/conf"
)

// printer writes a configuration as YAML that means the same when it is loaded again, but for secrets, which are masked.
type printer struct {
	tree     *conf.Tree
	origin   bool // say behind each value where it comes from
	defaults bool // print also what nothing sets
}

// print writes the configuration of an app that was built. Above each pipeline it says where spans are once they are acknowledged.
func (p *printer) print(w io.Writer, a *App) error {
	root := block()
	for _, kind := range kinds {
		section := block()
		for _, id := range p.tree.Keys(kind.section()) {
			for _, c := range a.config.components {
				if c.key.kind == kind && c.key.id.String() == id {
					section.add(id, p.value(reflect.ValueOf(c.value).Elem(), []string{kind.section(), id}))
				}
			}
		}
		if len(section.Content) > 0 {
			root.add(kind.section(), section)
		}
	}
	service := p.value(reflect.ValueOf(&a.config.service).Elem(), []string{"service"})
	root.add("service", service)
	for _, pipe := range a.config.pipelines {
		if key := service.find("pipelines", pipe.id.String()); key != nil {
			key.HeadComment = "acknowledged spans are " + a.acknowledged(pipe)
		}
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode((*yaml.Node)(root)); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return enc.Close()
}

// acknowledged says where the spans of a pipeline are once a client has a success answer: `in memory (memory), sent (otlp)`.
func (a *App) acknowledged(p pipelineConfig) string {
	var parts []string
	for _, c := range p.exporters {
		parts = append(parts, fmt.Sprintf("%s (%s)", a.graph.find(c.key, "").keep, c.key.id))
	}
	return strings.Join(parts, ", ")
}

// yamlNode is a YAML node that is put together here.
type yamlNode yaml.Node

func block() *yamlNode { return &yamlNode{Kind: yaml.MappingNode} }

// add adds a key, unless its value is nil.
func (n *yamlNode) add(key string, value *yamlNode) {
	if value != nil {
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, (*yaml.Node)(value))
	}
}

// find returns the node of a key below a block, or nil.
func (n *yamlNode) find(path ...string) *yaml.Node {
	var key *yaml.Node
	at := (*yaml.Node)(n)
	for _, want := range path {
		i := 0
		for i < len(at.Content) && at.Content[i].Value != want {
			i += 2 // behind each key stands its value, which may be the same word
		}
		if i >= len(at.Content) {
			return nil
		}
		key, at = at.Content[i], at.Content[i+1]
	}
	return key
}

// value returns what to print for a value, or nil for nothing.
func (p *printer) value(v reflect.Value, path []string) *yamlNode {
	given := p.tree.Has(path...)
	if !given && !p.defaults {
		return nil
	}
	if o, ok := v.Addr().Interface().(optional); ok {
		inner, on := o.inner()
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
		return p.noted(n, path, len(n.Content) == 0)
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
			n.add(key, p.value(v.Field(i), append(path[:len(path):len(path)], key)))
		}
	}
}

func (p *printer) mapping(v reflect.Value, path []string) *yamlNode {
	n := block()
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range keys {
		value := reflect.New(v.Type().Elem()).Elem() // a copy: values of a map have no address
		value.Set(v.MapIndex(k))
		n.add(k.String(), p.value(value, append(path[:len(path):len(path)], k.String())))
	}
	return p.noted(n, path, len(n.Content) == 0)
}

// list prints a list of words on one line, with one note for all of them.
func (p *printer) list(v reflect.Value, path []string) *yamlNode {
	n := &yamlNode{Kind: yaml.SequenceNode}
	words := true
	for i := range v.Len() {
		words = words && isLeaf(v.Index(i))
		item := p.value(v.Index(i), append(path[:len(path):len(path)], strconv.Itoa(i)))
		if item == nil {
			item = block()
			item.Style = yaml.FlowStyle
		}
		if words {
			item.LineComment = ""
		}
		n.Content = append(n.Content, (*yaml.Node)(item))
	}
	return p.noted(n, path, words)
}

// leaf prints what was written where something was, since `10%` says more than the bytes that it is here and now.
func (p *printer) leaf(v reflect.Value, path []string, given bool) *yamlNode {
	text := leafText(v)
	if s, ok := p.tree.Get(path...).(conf.Scalar); ok && !isSecret(v) {
		text = s.Text
	}
	if !given && !readsBack(v.Type(), text) {
		return nil
	}
	n := &yamlNode{Kind: yaml.ScalarNode, Tag: "!!str", Value: strings.ReplaceAll(text, "$", "$$")}
	_, size := v.Interface().(ByteSize)
	if _, isText := v.Addr().Interface().(encoding.TextUnmarshaler); size || !isText && v.Kind() != reflect.String {
		n.Tag = "" // a number or a bool, which is not quoted
	}
	return p.noted(n, path, true)
}

func isSecret(v reflect.Value) bool {
	_, secret := v.Interface().(Secret)
	return secret
}

// readsBack reports whether a text could be given for a type: some defaults are what no text says.
func readsBack(t reflect.Type, text string) bool {
	u, ok := reflect.New(t).Interface().(encoding.TextUnmarshaler)
	return !ok || u.UnmarshalText([]byte(text)) == nil
}

// noted makes a node one line, if it is to be, and says where it comes from.
func (p *printer) noted(n *yamlNode, path []string, oneLine bool) *yamlNode {
	if !oneLine {
		return n
	}
	if n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle
	}
	if p.origin {
		n.LineComment = "default"
		if p.tree.Has(path...) {
			n.LineComment = originText(p.tree.ValuePos(path...))
		}
	}
	return n
}

// originText is a place without the value that stands there: flags and variables may hold secrets.
func originText(pos conf.Pos) string {
	if pos.Line > 0 {
		return pos.String()
	}
	name, _, _ := strings.Cut(pos.Source, "=")
	if strings.HasPrefix(name, "--set ") {
		return name
	}
	name, _, _ = strings.Cut(name, " ")
	if strings.HasPrefix(name, "--") {
		return name
	}
	return "environment " + name
}
