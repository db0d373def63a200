// Package semconv knows which attributes the semantic conventions of OpenTelemetry renamed, so that
// queries find spans of older and newer instrumentations by one name.
package semconv

import (
	_ "embed"
	"maps"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// renames has a line "version old-name new-name" for each rename, the oldest first.
//
//go:embed renames.txt
var renames string

// Config says which names of attributes are one field.
type Config struct {
	Enabled  bool                `yaml:"enabled" doc:"Whether all names of an attribute that OpenTelemetry renamed are one field, such as http.method and http.request.method. If not, a name finds only itself."`
	Families map[string][]string `yaml:"families" doc:"Further names: the current name of an attribute, and its older names, the newest first."`
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config { return Config{Enabled: true} }

// Validate returns an error if a name is empty or belongs to two attributes.
func (c *Config) Validate() error {
	_, err := New(*c)
	return err
}

// Names knows all names of attributes. It does not change.
type Names struct {
	// joined has the value of tracestore.Field.Names by name.
	joined map[string]string
}

// New returns the names of a configuration, or nil if it is not enabled.
func New(c Config) (*Names, error) {
	if !c.Enabled {
		return nil, nil
	}
	known := make(families)
	for line := range strings.Lines(renames) {
		if f := strings.Fields(line); f[0] != "#" {
			known.rename(f[1], f[2])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Families)) {
		older := c.Families[name]
		if len(older) == 0 {
			return nil, pipeline.BadKey("families", "%q must have at least one older name", name)
		}
		for _, old := range older {
			if _, ok := c.Families[old]; ok {
				return nil, pipeline.BadKey("families", "%q is both a current and an older name; list all older names under one current name", old)
			}
		}
		others := known[name]
		known[name] = nil
		for _, old := range slices.Concat(older, others) {
			known.rename(old, name)
		}
	}
	n := &Names{joined: make(map[string]string)}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		all := append([]string{name}, known[name]...)
		for _, one := range all {
			switch {
			case one == "" || strings.Contains(one, "\x00"):
				return nil, pipeline.BadKey("families", "%q is not a name of an attribute", one)
			case n.joined[one] != "":
				return nil, pipeline.BadKey("families", "%q is a name of two attributes, or twice a name of %q", one, name)
			}
			n.joined[one] = tracestore.JoinNames(all...)
		}
	}
	return n, nil
}

// families are the older names of attributes by current name, the preferred one first.
type families map[string][]string

// rename adds a rename that is newer than those before, unless it is known. It may also be the
// opposite of an earlier one.
func (f families) rename(old, name string) {
	if slices.Contains(f[name], old) {
		return
	}
	f[name] = append(f[name], old)
	for _, older := range f[old] {
		if older != name {
			f[name] = append(f[name], older)
		}
	}
	delete(f, old)
}

// Of returns the value of [tracestore.Field.Names] for a key, or "" if it has no other names.
func (n *Names) Of(key string) string {
	if n == nil {
		return ""
	}
	return n.joined[key]
}

// WithoutOlder returns keys without those that have a newer name in the list.
func (n *Names) WithoutOlder(keys []string) []string {
	newest := make(map[string]string) // in the list, by all names
	for _, key := range keys {
		if all := n.Of(key); all != "" && newest[all] == "" {
			newest[all] = n.first(all, keys)
		}
	}
	if len(newest) == 0 {
		return keys
	}
	isOlder := func(key string) bool { all := n.Of(key); return all != "" && newest[all] != key }
	return slices.DeleteFunc(slices.Clone(keys), isOlder)
}

// first returns the first of several names that is in a list.
func (n *Names) first(all string, keys []string) string {
	for f := range (tracestore.Field{Names: all}).EachName() {
		if slices.Contains(keys, f.Key) {
			return f.Key
		}
	}
	return ""
}
