package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// Preset is a configuration that is built into the program. It is selected by its name on the
// command line.
type Preset struct {
	Name string
	Doc  string // a few words for the help text
	YAML []byte
}

// Override is one value from the command line.
type Override struct {
	Flag  string // without the value, for messages
	Path  []string
	Value string // YAML
}

// ParseSet parses the argument of --set: `path=value`. The parts of the path are joined by `::`, or
// by dots if no key contains one. Errors do not contain the value, which may be a secret.
func ParseSet(s string) (Override, error) {
	path, value, ok := strings.Cut(s, "=")
	if !ok || path == "" {
		return Override{}, errors.New("--set: write path=value, for example --set service::telemetry::logs::level=debug")
	}
	delim := "."
	if strings.Contains(path, yamltree.Delim) {
		delim = yamltree.Delim
	}
	parts := strings.Split(path, delim)
	if slices.Contains(parts, "") {
		return Override{}, fmt.Errorf("--set %s: the path has an empty part", path)
	}
	return Override{Flag: "--set " + path, Path: parts, Value: value}, nil
}

// Options are the sources of a configuration. Later sources override earlier ones: preset, files,
// environment variables, flags, overrides.
type Options struct {
	Factories []pipeline.Factory
	Presets   []Preset
	// Preset is the name of a preset. If it is "", the first preset is used if there are no Files,
	// and none otherwise.
	Preset    string
	Files     []string
	Flags     []GivenFlag // environment variables first
	Overrides []Override
	// Strict makes warnings errors.
	Strict bool
	// LookupEnv defaults to os.LookupEnv, ReadFile to [ReadFile] without a context.
	LookupEnv func(string) (string, bool)
	// Environ returns all environment variables as NAME=VALUE. It defaults to os.Environ, or to no
	// variables if LookupEnv is set.
	Environ  func() []string
	ReadFile func(string) ([]byte, error)

	explain bool // apply flags with problems as well as possible, see [pipeline.FlagTarget]
}

func (o *Options) setDefaults() {
	switch {
	case o.Environ != nil:
	case o.LookupEnv == nil:
		o.Environ = os.Environ
	default:
		o.Environ = func() []string { return nil }
	}
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	if o.ReadFile == nil {
		o.ReadFile = ReadFile(context.Background())
	}
}

// maxFile is the maximum size of a file that a configuration consists of or includes.
const maxFile = 16 << 20

// ReadFile returns the function that reads the files of a configuration until ctx ends.
func ReadFile(ctx context.Context) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) { return pipeline.ReadFile(ctx, name, maxFile) }
}

// recordVariables returns a set to which LookupEnv adds the names of all variables that it looks up
// from now on.
func (o *Options) recordVariables() map[string]bool {
	used, lookup := map[string]bool{}, o.LookupEnv
	o.LookupEnv = func(name string) (string, bool) {
		used[name] = true
		return lookup(name)
	}
	return used
}

// checkFactories reports two factories of one kind with the same type or alias. It also reports a
// connector with the type of a receiver or exporter, because the two would be ambiguous in the
// lists of a pipeline.
func (o *Options) checkFactories() error {
	seen := map[Key]bool{}
	for _, f := range o.Factories {
		for _, name := range typeNames(f) {
			key := Key{f.Kind(), pipeline.ID{Type: name}}
			if seen[key] {
				return fmt.Errorf("BUG: this program has two types of %s called %q", f.Kind(), name)
			}
			seen[key] = true
		}
	}
	for key := range seen {
		if key.Kind == pipeline.KindConnector && (seen[Key{pipeline.KindReceiver, key.ID}] || seen[Key{pipeline.KindExporter, key.ID}]) {
			return fmt.Errorf("BUG: this program has a connector and another type called %q", key.ID)
		}
	}
	return nil
}

// typeNames returns the type of a factory and its aliases.
func typeNames(f pipeline.Factory) []string {
	return append([]string{f.Type()}, f.Aliases()...)
}

// firstType returns the first type of a kind, for examples, or "" if there is none.
func (o *Options) firstType(kind pipeline.Kind) string {
	for _, f := range o.Factories {
		if f.Kind() == kind {
			return f.Type()
		}
	}
	return ""
}

// typesWithLogs lists the types of a kind that can be in pipelines of log records, for users.
func (o *Options) typesWithLogs(kind pipeline.Kind) string {
	var types []string
	for _, f := range o.Factories {
		if f.Kind() == kind && f.TakesLogs() {
			types = append(types, f.Type())
		}
	}
	if len(types) == 0 {
		return "none"
	}
	slices.Sort(types)
	return strings.Join(types, ", ")
}

// hasPreset reports whether the first source is a preset.
func (o *Options) hasPreset() bool { return o.Preset != "" || len(o.Files) == 0 && len(o.Presets) > 0 }

// sources returns the preset and the files.
func (o *Options) sources() ([]yamltree.Source, error) {
	var sources []yamltree.Source
	preset := o.Preset
	if preset == "" && len(o.Files) == 0 && len(o.Presets) > 0 {
		preset = o.Presets[0].Name
	}
	if preset != "" {
		var names []string
		for _, p := range o.Presets {
			names = append(names, p.Name)
			if p.Name == preset {
				sources = append(sources, yamltree.Source{Name: "preset " + p.Name, YAML: p.YAML})
			}
		}
		if len(sources) == 0 {
			return nil, fmt.Errorf("unknown preset %q%s", preset, yamltree.Suggest(preset, names, "known"))
		}
	}
	for _, f := range o.Files {
		b, err := o.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("cannot read configuration: %w", err)
		}
		sources = append(sources, yamltree.Source{Name: f, YAML: b})
	}
	return sources, nil
}

func (o *Options) overrides() []yamltree.Source {
	var sources []yamltree.Source
	for _, v := range o.Overrides {
		sources = append(sources, yamltree.Source{Name: v.Flag, YAML: []byte(v.Value), Path: v.Path})
	}
	return sources
}
