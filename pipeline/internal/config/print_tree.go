package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// treeConfig returns the node of a configuration that decodes itself: set keys as written and, if
// requested, the other keys with their effective values.
func (p *printer) treeConfig(c yamltree.TreeConfig, path []string) *yamlNode {
	if s, ok := p.tree.Get(path...).(yamltree.Scalar); ok && s.Empty {
		return p.effective(c.EffectiveTree())
	}
	return p.given(effectiveValue{value: c.EffectiveTree()}, path)
}

// effectiveValue is the part of an effective tree at a path, or the nearest part above it if the
// structure of the tree differs from the written one.
type effectiveValue struct {
	value     any
	elsewhere bool
}

func (e effectiveValue) child(key string) effectiveValue {
	if e.elsewhere {
		return e
	}
	switch v := e.value.(type) {
	case map[string]any:
		if c, ok := v[key]; ok {
			return effectiveValue{value: c}
		}
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i < len(v) {
			return effectiveValue{value: v[i]}
		}
	}
	return effectiveValue{e.value, true}
}

// isSecret reports whether the value is a secret, or may be one.
func (e effectiveValue) isSecret() bool {
	return e.value == yamltree.MaskedSecret || e.elsewhere && holdsSecret(e.value)
}

func holdsSecret(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), holdsSecret)
	case []any:
		return slices.ContainsFunc(v, holdsSecret)
	}
	return v == yamltree.MaskedSecret
}

// given returns the node of a value that is written at path.
func (p *printer) given(e effectiveValue, path []string) *yamlNode {
	switch v := p.tree.Get(path...).(type) {
	case map[string]any:
		return p.givenBlock(e, path)
	case []any:
		n := &yamlNode{Kind: yaml.SequenceNode}
		oneLine := true
		for i, item := range v {
			_, scalar := item.(yamltree.Scalar)
			oneLine = oneLine && scalar
			n.Content = append(n.Content, (*yaml.Node)(p.given(e.child(strconv.Itoa(i)), below(path, strconv.Itoa(i)))))
		}
		if oneLine {
			for _, item := range n.Content {
				item.LineComment = ""
			}
		}
		return p.commented(n, path, oneLine)
	case yamltree.Scalar:
		return p.commented(p.givenScalar(v, e), path, true)
	}
	return block()
}

func (p *printer) givenBlock(e effectiveValue, path []string) *yamlNode {
	n := block()
	for _, k := range p.tree.Keys(path...) {
		n.add(k, p.given(e.child(k), below(path, k)))
	}
	if all, ok := e.value.(map[string]any); ok && p.defaults && !e.elsewhere {
		for _, k := range slices.Sorted(maps.Keys(all)) {
			if !p.tree.Has(below(path, k)...) {
				n.add(k, p.effective(all[k]))
			}
		}
	}
	return p.commented(n, path, len(n.Content) == 0)
}

func (p *printer) givenScalar(s yamltree.Scalar, e effectiveValue) *yamlNode {
	typed := s.Typed()
	text, isText := typed.(string)
	switch {
	case typed == nil:
		return &yamlNode{Kind: yaml.ScalarNode}
	case e.isSecret():
		return textNode(yamltree.MaskedSecret)
	case p.written && s.Written != "":
		return &yamlNode{Kind: yaml.ScalarNode, Tag: "!!str", Value: s.Written}
	case isText:
		return textNode(pipeline.MaskURLs(text))
	}
	return &yamlNode{Kind: yaml.ScalarNode, Value: s.Text}
}

func textNode(text string) *yamlNode {
	return &yamlNode{Kind: yaml.ScalarNode, Tag: "!!str", Value: strings.ReplaceAll(text, "$", "$$")}
}

// effective returns the node of a value that is not written, or nil if there is nothing to show.
func (p *printer) effective(v any) *yamlNode {
	var n *yamlNode
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		n = textNode(v)
	case map[string]any:
		n = block()
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if p.defaults {
				n.add(k, p.effective(v[k]))
			}
		}
		if len(n.Content) > 0 {
			return n
		}
		n.Style = yaml.FlowStyle
	case []any:
		n = &yamlNode{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, item := range v {
			if c := p.effective(item); c != nil {
				c.LineComment = ""
				n.Content = append(n.Content, (*yaml.Node)(c))
			}
		}
	default:
		n = &yamlNode{}
		if (*yaml.Node)(n).Encode(v) != nil {
			return nil
		}
	}
	if p.origin {
		n.LineComment = "default"
	}
	return n
}
