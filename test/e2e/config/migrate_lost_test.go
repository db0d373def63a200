package config_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/internal/commands/migrate"
	"github.com/tracing-backend/tracing/pipeline/soak"
)

// A key that no rule knows, at any place of a file, is in the output or in a note.
func TestUnknownKeysAreListed(t *testing.T) {
	every := 4 // one of this many maps of a file is tried
	if testing.Short() {
		every = 16
	}
	r := rand.New(rand.NewPCG(soak.Seed(t), 0))
	for _, in := range corpus(t) {
		if filepath.Ext(in.file) != ".yaml" {
			continue
		}
		t.Run(in.name(), func(t *testing.T) {
			for i := r.IntN(every); ; i += every {
				text, path, ok := withUnknown(t, in.text, i)
				if !ok {
					return
				}
				switch last := path[max(0, len(path)-1):]; {
				case slices.Equal(last, []string{"metadata"}), slices.Equal(last, []string{"headers"}), slices.Contains(path, "valueFrom"):
					continue // the name of a manifest, a list of headers, a variable that is listed by its name
				}
				if lost := lostFrom(text, "unknown_key"); len(lost) > 0 && !isListed(text, path) {
					t.Errorf("%s: %s", strings.Join(path, "."), lost)
				}
			}
		})
	}
}

// A flag or variable that no rule knows is in a note.
func TestUnknownFlagsAreListed(t *testing.T) {
	for _, in := range corpus(t) {
		switch filepath.Ext(in.file) {
		case ".env":
			text := in.text + "\nCOLLECTOR_UNKNOWN=1\nUNKNOWN_NAME=2\nEMPTY_NAME=\nUNKNOWN_PORT=tcp://10.0.0.1:80\n"
			for _, lost := range lostFrom(text, "COLLECTOR_UNKNOWN", "UNKNOWN_NAME", "EMPTY_NAME", "UNKNOWN_PORT") {
				t.Errorf("%s: %s is lost", in.name(), lost)
			}
		case ".flags":
			for _, lost := range lostFrom(in.text+" --collector.unknown=1 --unknown argument", "--collector.unknown", "--unknown") {
				t.Errorf("%s: %s is lost", in.name(), lost)
			}
		}
	}
}

// lostFrom returns the words that are neither in the output of migrate nor in its error, and says
// if the output has another number of notes than the summary.
func lostFrom(text string, words ...string) (lost []string) {
	result, err := migrate.Migrate(migrate.Input{From: migrate.Auto, Source: []byte(text), Components: tracing.Components(),
		Presets: tracing.Presets()})
	output := ""
	if err != nil {
		output = err.Error()
	} else {
		output = continued.ReplaceAllString(string(result.YAML), " ")
		if notes := len(note.FindAllString(output, -1)); notes > result.Changed+result.Dropped+result.Decisions {
			lost = append(lost, fmt.Sprintf("%d notes, but the summary is %s", notes, result.Summary()))
		}
	}
	for _, word := range words {
		if !hasWord(output, word) {
			lost = append(lost, word)
		}
	}
	return lost
}

var wordBefore, wordAfter = regexp.MustCompile(`(^|--|[^\w-])$`), regexp.MustCompile(`^($|[^\w.-]|[.:]( |$))`)

// hasWord reports whether the word is in a text, not as a part of another name or path. Searching
// for the word first is many times faster than a regular expression for each word.
func hasWord(text, word string) bool {
	for at := 0; ; at++ {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		at += i
		if end := at + len(word); wordBefore.MatchString(text[max(0, at-2):at]) && wordAfter.MatchString(text[end:min(end+2, len(text))]) {
			return true
		}
	}
}

var (
	note      = regexp.MustCompile(`# (changed|dropped|decide): (.*)`)
	continued = regexp.MustCompile(`\n *#   `)
)

// isListed reports whether a note says that a part of path is not in the output, or an error that
// there is none.
func isListed(text string, path []string) bool {
	result, err := migrate.Migrate(migrate.Input{From: migrate.Auto, Source: []byte(text), Components: tracing.Components(),
		Presets: tracing.Presets()})
	if err != nil {
		return true
	}
	for _, m := range note.FindAllStringSubmatch(continued.ReplaceAllString(string(result.YAML), " "), -1) {
		items, _, _ := strings.Cut(m[2], ": ")
		for item := range strings.SplitSeq(items, ", ") {
			if m[1] != "changed" && strings.Contains("."+strings.Join(path, ".")+".", "."+item+".") {
				return true
			}
		}
	}
	return false
}

// withUnknown adds a key to the map number i of a file, also to those in texts, and returns its
// path.
func withUnknown(t *testing.T, text string, i int) (changed string, path []string, ok bool) {
	t.Helper()
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var n yaml.Node
		if err := dec.Decode(&n); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if !ok {
			path, ok = addUnknown(&n, titleOf(&n), &i)
		}
		if err := enc.Encode(&n); err != nil {
			t.Fatal(err)
		}
	}
	return out.String(), path, ok
}

// titleOf returns the kind and the name of a manifest, which notes may have instead of its keys.
func titleOf(n *yaml.Node) []string {
	var manifest struct {
		Kind     string
		Metadata struct{ Name string }
	}
	if n.Decode(&manifest) != nil || manifest.Kind == "" {
		return nil
	}
	return []string{manifest.Kind + " " + manifest.Metadata.Name}
}

func addUnknown(n *yaml.Node, path []string, i *int) ([]string, bool) {
	switch n.Kind {
	case yaml.ScalarNode:
		var inner yaml.Node
		if !strings.Contains(n.Value, "\n") || yaml.Unmarshal([]byte(n.Value), &inner) != nil {
			return nil, false
		}
		at, ok := addUnknown(&inner, path, i)
		if b, err := yaml.Marshal(&inner); ok && err == nil {
			n.Value = string(b)
		}
		return at, ok
	case yaml.MappingNode:
		if *i == 0 {
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "unknown_key"}, &yaml.Node{Kind: yaml.ScalarNode, Value: "1"})
			return path, true
		}
		*i--
	}
	for j, c := range n.Content {
		at := path
		if n.Kind == yaml.MappingNode {
			if j%2 == 0 {
				continue
			}
			at = append(path[:len(path):len(path)], n.Content[j-1].Value)
		}
		if found, ok := addUnknown(c, at, i); ok {
			return found, true
		}
	}
	return nil, false
}
