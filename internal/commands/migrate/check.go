package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/app"
)

// maxChecks is the maximum number of times that a result is checked. Each time, unknown keys are
// dropped, and the next check may find further ones.
const maxChecks = 8

var (
	unknownKey = regexp.MustCompile(`^unknown key "`)
	// sensitive matches paths of keys that are only dropped if the user decides so.
	sensitive = regexp.MustCompile(`\b(tls|auth|tenancy|multi_tenancy)\b`)
	// unset matches mistakes that depend on the environment of the process that runs the
	// configuration.
	unset = regexp.MustCompile(`environment variable \w+ is not set|^reading \$\{file:`)
)

// check renders the document, loads it as the program will, drops unknown keys, and adds notes for
// all other mistakes. Without components, nothing is checked.
func (d *document) check(components []pipeline.Factory) ([]byte, error) {
	for range maxChecks {
		text, err := d.render()
		if err != nil || len(components) == 0 {
			return text, err
		}
		problems := problemsOf(text, components)
		if len(problems) == 0 {
			return text, nil
		}
		places, err := placesOf(text)
		if err != nil {
			return nil, err
		}
		if !d.dropUnknown(problems, places) {
			d.noteProblems(problems, places)
			return d.render()
		}
	}
	return d.render()
}

// problemsOf returns the mistakes in a configuration, without those that depend on the environment.
func problemsOf(text []byte, components []pipeline.Factory) (found app.Problems) {
	_, err := app.Load(app.LoadOptions{Factories: components, Files: []string{"output"}, LookupEnv: os.LookupEnv,
		ReadFile: func(name string) ([]byte, error) {
			if name != "output" {
				return nil, os.ErrNotExist
			}
			return text, nil
		}})
	var all app.Problems
	errors.As(err, &all)
	for _, p := range all {
		if p.Pos.Line > 0 && !unset.MatchString(p.Msg) {
			found = append(found, p)
		}
	}
	return found
}

// places holds the paths of keys and values by line and column.
type places map[[2]int][]string

// placesOf returns the paths of all keys and values in YAML text.
func placesOf(text []byte) (places, error) {
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&doc); err != nil {
		return nil, fmt.Errorf("cannot read the result: %w", err)
	}
	found := places{}
	found.addPlace(doc.Content[0], nil)
	return found, nil
}

func (p places) addPlace(n *yaml.Node, path []string) {
	at := [2]int{n.Line, n.Column}
	if p[at] == nil {
		p[at] = path
	}
	for i, c := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			p.addPlace(c, below(path, strconv.Itoa(i)))
		case n.Kind == yaml.MappingNode && i%2 == 0:
			p[[2]int{c.Line, c.Column}] = below(path, c.Value)
			p.addPlace(n.Content[i+1], below(path, c.Value))
		}
	}
}

func below(path []string, key string) []string { return append(path[:len(path):len(path)], key) }

// dropUnknown drops unknown keys, and reports whether there are any.
func (d *document) dropUnknown(problems app.Problems, places places) (found bool) {
	for _, p := range problems {
		b, key := d.find(places[[2]int{p.Pos.Line, p.Pos.Col}])
		if !unknownKey.MatchString(p.Msg) || b == nil || !b.has(key) || strings.HasPrefix(p.Path, connectors+".") {
			continue
		}
		if sensitive.MatchString(p.Path + " " + key) {
			b.decideOn(key, "%s has no such key here", p.Path)
		} else {
			b.drop(key, "%s has no such key", p.Path)
		}
		found = true
	}
	return found
}

// noteProblems adds a note above each line with a mistake.
func (d *document) noteProblems(problems app.Problems, places places) {
	for _, p := range problems {
		b, key := d.find(places[[2]int{p.Pos.Line, p.Pos.Col}])
		if b == nil {
			b, key = d.root, firstOf(d.root.keys()...)
		}
		msg := strings.TrimPrefix(fmt.Sprintf("%s: %s", p.Path, p.Msg), ": ")
		b.note(decide, key, "%s", lines.ReplaceAllString(msg, "delete it$2"))
	}
}

// lines matches line numbers in messages, which differ from line numbers in the final result.
var lines = regexp.MustCompile(`delete lines? \d+(-\d+)?( and the references to it)?(: line \d+(, line \d+)*)?`)

// find returns the deepest block on a path, and its key on the path.
func (d *document) find(path []string) (found *block, key string) {
	n := d.root.node
	for _, step := range path {
		switch n.Kind {
		case yaml.MappingNode:
			b := &block{d, n}
			if !b.has(step) {
				return found, key
			}
			found, key = b, step
			n = b.value(step)
		case yaml.SequenceNode:
			items := itemsOf(n)
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(items) {
				return found, key
			}
			n = items[i]
		}
	}
	return found, key
}

// itemsOf returns the items of a list without notes.
func itemsOf(n *yaml.Node) (items []*yaml.Node) {
	for _, c := range n.Content {
		if c.Tag != noteTag {
			items = append(items, c)
		}
	}
	return items
}
