package migrate

import (
	"slices"

	"gopkg.in/yaml.v3"
)

// block is a map in a document: a section, the settings of a component, or a part of them. All
// methods may be called on nil, which is a missing block without keys.
type block struct {
	doc  *document
	node *yaml.Node // a map
}

// index returns the index of a key in the content of the node, or -1.
func (b *block) index(key string) int {
	if b == nil {
		return -1
	}
	for i := 0; i+1 < len(b.node.Content); i += 2 {
		if k := b.node.Content[i]; k.Value == key && k.Tag != noteTag {
			return i
		}
	}
	return -1
}

// keys returns the keys in the order of the file.
func (b *block) keys() (keys []string) {
	if b == nil {
		return nil
	}
	for i := 0; i+1 < len(b.node.Content); i += 2 {
		if k := b.node.Content[i]; k.Tag != noteTag {
			keys = append(keys, k.Value)
		}
	}
	return keys
}

// value returns the node of a key, or nil.
func (b *block) value(key string) *yaml.Node {
	if i := b.index(key); i >= 0 {
		return b.node.Content[i+1]
	}
	return nil
}

func (b *block) has(path ...string) bool {
	last := len(path) - 1
	return b.block(path[:last]...).index(path[last]) >= 0
}

// block returns the block at path, or nil if there is none. A key without a value is an empty
// block.
func (b *block) block(path ...string) *block {
	for _, key := range path {
		v := b.value(key)
		if v == nil || v.Kind != yaml.MappingNode && v.ShortTag() != "!!null" {
			return nil
		}
		if v.Kind != yaml.MappingNode {
			v.Kind, v.Tag, v.Value, v.Style = yaml.MappingNode, "!!map", "", 0
		}
		b = &block{b.doc, v}
	}
	return b
}

// ensure returns the block at path. It adds missing blocks, and replaces values that are not
// blocks.
func (b *block) ensure(path ...string) *block {
	for _, key := range path {
		next := b.block(key)
		if next == nil {
			next = &block{b.doc, &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}}
			b.setNode(key, next.node)
		}
		b = next
	}
	return b
}

// text returns the scalar at path, or "".
func (b *block) text(path ...string) string {
	last := len(path) - 1
	v := b.block(path[:last]...).value(path[last])
	if v == nil || v.Kind != yaml.ScalarNode || v.ShortTag() == "!!null" {
		return ""
	}
	return v.Value
}

// texts returns the scalars of the list at path. A single scalar counts as a list of one.
func (b *block) texts(path ...string) (texts []string) {
	last := len(path) - 1
	v := b.block(path[:last]...).value(path[last])
	switch {
	case v == nil:
		return nil
	case v.Kind == yaml.ScalarNode && v.ShortTag() != "!!null":
		return []string{v.Value}
	case v.Kind != yaml.SequenceNode:
		return nil
	}
	for _, c := range v.Content {
		if c.Kind == yaml.ScalarNode && c.Tag != noteTag {
			texts = append(texts, c.Value)
		}
	}
	return texts
}

// setNode sets the value of a key, which is added at the end if it does not exist.
func (b *block) setNode(key string, value *yaml.Node) {
	if i := b.index(key); i >= 0 {
		b.node.Content[i+1] = value
		return
	}
	b.node.Content = append(b.node.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
}

// insertAfter adds a key after another one, or at the end if there is no such key.
func (b *block) insertAfter(after, key string, value *yaml.Node) {
	at := b.index(after)
	if at < 0 || b.has(key) {
		b.setNode(key, value)
		return
	}
	b.node.Content = slices.Insert(b.node.Content, at+2, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
}

// set sets the value of a key to YAML text, which must be valid.
func (b *block) set(key, text string) { b.setNode(key, yamlNode(text)) }

// setText sets the value of a key to a text, with the style of the value that it replaces.
func (b *block) setText(key, text string) {
	if v := b.value(key); v != nil && v.Kind == yaml.ScalarNode && v.ShortTag() == "!!str" {
		v.Value = text
		return
	}
	b.doc.markListed(b.value(key))
	b.setNode(key, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text})
}

// yamlNode parses YAML text of this package.
func yamlNode(text string) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) != 1 {
		panic("BUG: not a YAML value: " + text)
	}
	return doc.Content[0]
}

// note adds a note above the line of a key, or at the end of the block if there is no such key.
func (b *block) note(kind noteKind, key, format string, args ...any) {
	if b == nil {
		return
	}
	at := b.index(key)
	if at < 0 {
		at = len(b.node.Content)
	}
	b.noteAt(at, kind, format, args...)
}

func (b *block) noteAt(at int, kind noteKind, format string, args ...any) {
	b.node.Content = slices.Insert(b.node.Content, at, b.doc.noteNode(kind, format, args...), emptyNode())
}

// drop removes a key, if it exists, and leaves the reason in its place.
func (b *block) drop(key, format string, args ...any) {
	at := b.index(key)
	if at < 0 {
		return
	}
	b.doc.markListed(b.value(key))
	b.remove(key)
	b.noteAt(at, dropped, key+": "+format, args...)
}

// remove removes a key that a note covers, or whose value has moved. Values inside a map are not
// covered: lost ones are listed later. Notes in the map move to its place.
func (b *block) remove(key string) {
	at := b.index(key)
	if at < 0 {
		return
	}
	v := b.node.Content[at+1]
	if v.Kind != yaml.MappingNode || len(v.Content) == 0 {
		b.doc.markListed(v)
	}
	b.node.Content = slices.Replace(b.node.Content, at, at+2, takeNotes(v)...)
}

// decideOn removes a key, if it exists, and adds a note that the user must decide what replaces it.
func (b *block) decideOn(key, format string, args ...any) {
	if b.has(key) {
		b.doc.markListed(b.value(key))
		b.note(decide, key, key+": "+format, args...)
		b.remove(key)
	}
}

// rename changes the name of a key, if it exists.
func (b *block) rename(key, to string) {
	at := b.index(key)
	if at < 0 {
		return
	}
	b.drop(to, "%s has precedence", key)
	b.node.Content[b.index(key)].Value = to
	b.note(changed, to, "%s was %s", to, key)
}

// replaceItemBy replaces a text in a list with several, and reports whether it was there. The list
// gets no note.
func (b *block) replaceItemBy(key, old string, texts ...string) bool {
	v := b.value(key)
	if v == nil || v.Kind != yaml.SequenceNode {
		return false
	}
	at := slices.IndexFunc(v.Content, func(c *yaml.Node) bool { return isText(c, old) })
	if at < 0 {
		return false
	}
	b.dropItem(key, old)
	have := b.texts(key)
	for _, text := range slices.Backward(texts) {
		if !slices.Contains(have, text) {
			v.Content = slices.Insert(v.Content, at, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text})
		}
	}
	return true
}

// dropItem removes a text from a list, and reports whether it was there. It adds no note.
func (b *block) dropItem(key, text string) bool {
	v := b.value(key)
	if v == nil || v.Kind != yaml.SequenceNode {
		return false
	}
	n := len(v.Content)
	v.Content = slices.DeleteFunc(v.Content, func(c *yaml.Node) bool {
		if isText(c, text) {
			b.doc.markListed(c)
		}
		return isText(c, text)
	})
	return len(v.Content) < n
}

// addItem adds a text to a list, which is created if it does not exist.
func (b *block) addItem(key, text string) {
	v := b.value(key)
	if v == nil || v.Kind != yaml.SequenceNode {
		v = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
		b.setNode(key, v)
	}
	if !slices.Contains(b.texts(key), text) {
		v.Content = append(v.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text})
	}
}

func isText(n *yaml.Node, text string) bool {
	return n.Kind == yaml.ScalarNode && n.Tag != noteTag && n.Value == text
}

// copyNode returns a deep copy of a node.
func copyNode(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = nil
	for _, child := range n.Content {
		c.Content = append(c.Content, copyNode(child))
	}
	return &c
}
