package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/internal/conf"
)

// Preset is a configuration that is built into the program and chosen by its name on the command line.
type Preset struct {
	Name string
	YAML []byte
}

// Override is one value from the command line.
type Override struct {
	Flag  string // as the user typed it, for messages
	Path  []string
	Value string // YAML
}

// ParseSet reads the argument of --set: `path=value`. The parts of the path are joined by `::`, or by dots where no key has one.
func ParseSet(s string) (Override, error) {
	path, value, ok := strings.Cut(s, "=")
	if !ok || path == "" {
		return Override{}, fmt.Errorf("--set %s: write path=value, for example --set service::telemetry::logs::level=debug", s)
	}
	delim := "."
	if strings.Contains(path, conf.Delim) {
		delim = conf.Delim
	}
	parts := strings.Split(path, delim)
	if slices.Contains(parts, "") {
		return Override{}, fmt.Errorf("--set %s: the path has an empty part", s)
	}
	return Override{Flag: "--set " + s, Path: parts, Value: value}, nil
}

// LoadOptions says where the configuration comes from. Later sources override earlier ones: preset, files, environment, flags, overrides,
// each in order.
type LoadOptions struct {
	Factories []Factory
	Presets   []Preset
	// Preset is the name of a preset; "" takes the first of Presets when there are no Files, else none.
	Preset    string
	Files     []string
	flags     []givenFlag // of the environment and the command line
	Overrides []Override
	// Strict turns warnings into errors.
	Strict bool
	// LookupEnv and ReadFile default to the operating system's.
	LookupEnv func(string) (string, bool)
	ReadFile  func(string) ([]byte, error)
}

// Config is a configuration without mistakes, ready to be built.
type Config struct {
	service    serviceConfig
	components map[componentKey]*componentConfig
	pipelines  []pipelineConfig
	warnings   []string
	tree       *conf.Tree // what was written, and where
}

// Warnings returns what is allowed and probably not meant, one sentence each.
func (c *Config) Warnings() []string { return c.warnings }

type componentKey struct {
	kind Kind
	id   ID
}

func (k componentKey) String() string { return k.kind.String() + " " + k.id.String() }

type componentConfig struct {
	key     componentKey
	factory Factory
	value   any // pointer to the component's config
	refs    []refUse
	pos     conf.Pos
}

// refUse is one Ref field that is set.
type refUse struct {
	ref    reference
	path   []string
	word   string // what the field needs, in the user's words
	target *componentConfig
}

// pipelineConfig is one pipeline with its members resolved.
type pipelineConfig struct {
	id         ID
	receivers  []*componentConfig
	processors []*componentConfig
	exporters  []*componentConfig
}

// serviceConfig is the `service` section.
type serviceConfig struct {
	DataDir        string                     `yaml:"data_dir" doc:"Folder below which components keep their files, each in one of its own."`
	Extensions     []ID                       `yaml:"extensions" doc:"Extensions to start."`
	Pipelines      map[string]pipelineMembers `yaml:"pipelines" doc:"Pipelines by id, each of type traces: traces, traces/internal."`
	Limits         limitsConfig               `yaml:"limits" doc:"Bounds of the whole process."`
	Telemetry      telemetryConfig            `yaml:"telemetry" doc:"What the process tells about itself."`
	DeadLetterDir  string                     `yaml:"dead_letter_dir" doc:"Folder for spans that a destination refused for good after they had been acknowledged; empty keeps none."`
	DeadLetterSize ByteSize                   `yaml:"dead_letter_size" doc:"Greatest size of that folder; beyond it such spans are only counted."`
	StopTimeout    Duration                   `yaml:"stop_timeout" doc:"How long a shutdown may take to answer and drain what was accepted."`
	Watch          bool                       `yaml:"watch" doc:"Whether to load the configuration again when one of its files has changed, as SIGHUP does."`
	WatchInterval  Duration                   `yaml:"watch_interval" doc:"How often to look for changes. A file is taken once it was the same twice."`
}

type pipelineMembers struct {
	Receivers  []ID `yaml:"receivers" doc:"Where spans come from."`
	Processors []ID `yaml:"processors" doc:"What they pass through, in this order."`
	Exporters  []ID `yaml:"exporters" doc:"Where they go; each gets all of them."`
}

type limitsConfig struct {
	Inflight ByteSize `yaml:"inflight" doc:"Bytes of requests that may be in memory at once; requests beyond it are refused as overloaded."`
}

type telemetryConfig struct {
	Logs    logsConfig    `yaml:"logs" doc:"The process's own log, on standard error."`
	Metrics metricsConfig `yaml:"metrics" doc:"What admin serves on /metrics."`
}

type metricsConfig struct {
	CompatMetrics bool `yaml:"compat_metrics" doc:"Whether metrics of collector, agent and query are shown a second time under their names in the field, jaeger_*, with _total behind counters."`
}

type logsConfig struct {
	Level    string `yaml:"level" doc:"Least level that is logged: debug, info, warn or error."`
	Encoding string `yaml:"encoding" doc:"json, console, or auto: console on a terminal and json elsewhere."`
}

// Defaults of the service section.
const (
	defaultDataDir     = "./data"
	defaultInflight    = 256 << 20
	defaultStopTimeout = 30e9
	defaultDeadLetters = 1 << 30
	defaultWatch       = 5e9
)

func defaultService() serviceConfig {
	return serviceConfig{
		DataDir:        defaultDataDir,
		Limits:         limitsConfig{Inflight: defaultInflight},
		Telemetry:      telemetryConfig{Logs: logsConfig{Level: "info", Encoding: "auto"}},
		DeadLetterSize: defaultDeadLetters,
		StopTimeout:    defaultStopTimeout,
		WatchInterval:  defaultWatch,
	}
}

// Validate checks the values that their types cannot.
func (c *logsConfig) Validate() error {
	var errs []error
	if _, err := parseLevel(c.Level); err != nil {
		errs = append(errs, BadKey("level", "%v", err))
	}
	if c.Encoding != "json" && c.Encoding != "console" && c.Encoding != "auto" {
		errs = append(errs, BadKey("encoding", "%q is not an encoding; write json, console or auto", c.Encoding))
	}
	return errors.Join(errs...)
}

// Validate checks the values that their types cannot.
func (c *serviceConfig) Validate() error {
	if c.WatchInterval <= 0 {
		return BadKey("watch_interval", "must be above 0; leave out watch to look for no changes")
	}
	return nil
}

// Validate checks the values that their types cannot.
func (c *limitsConfig) Validate() error {
	const least = 1 << 20
	if c.Inflight < least {
		return BadKey("inflight", "must be at least 1MiB, or no request fits")
	}
	return nil
}

// Load reads, merges and checks a configuration. The error lists every mistake, one a line, in the order of the files; each line names the
// place, the key, what is wrong and what would be right.
func Load(o LoadOptions) (*Config, error) {
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	if o.ReadFile == nil {
		o.ReadFile = os.ReadFile
	}
	if err := o.ambiguous(); err != nil {
		return nil, err
	}
	sources, err := o.sources()
	if err != nil {
		return nil, err
	}
	flags := &overlayer{}
	if len(o.flags) > 0 {
		flags = o.overlay(sources)
	}
	l := o.read(slices.Concat(sources, flags.sources, o.overrides()))
	l.problems = append(l.problems, flags.problems...)
	l.warnings = append(l.warnings, flags.warnings...)
	if o.Strict {
		l.problems = append(l.problems, l.warnings...)
	}
	if len(l.problems) > 0 {
		l.problems.Sort()
		return nil, l.problems
	}
	l.warnings.Sort()
	for _, w := range l.warnings {
		l.config.warnings = append(l.config.warnings, w.Error())
	}
	return l.config, nil
}

// ambiguous reports two factories of one type.
func (o *LoadOptions) ambiguous() error {
	seen := map[componentKey]bool{}
	for _, f := range o.Factories {
		key := componentKey{f.kind, ID{Type: f.typ}}
		if seen[key] {
			return fmt.Errorf("BUG: this program has two types of %s called %q", f.kind, f.typ)
		}
		seen[key] = true
	}
	return nil
}

// read merges sources and checks the result.
func (o *LoadOptions) read(sources []conf.Source) *loader {
	tree, problems := conf.Load(sources, &conf.Expander{LookupEnv: o.LookupEnv, ReadFile: o.ReadFile})
	l := &loader{tree: tree, problems: problems, factories: map[Kind]map[string]Factory{}}
	l.config = &Config{components: map[componentKey]*componentConfig{}, service: defaultService(), tree: tree}
	for _, f := range o.Factories {
		if l.factories[f.kind] == nil {
			l.factories[f.kind] = map[string]Factory{}
		}
		l.factories[f.kind][f.typ] = f
	}
	l.load()
	return l
}

// sources returns the preset and the files.
func (o *LoadOptions) sources() ([]conf.Source, error) {
	var sources []conf.Source
	preset := o.Preset
	if preset == "" && len(o.Files) == 0 && len(o.Presets) > 0 {
		preset = o.Presets[0].Name
	}
	if preset != "" {
		var names []string
		for _, p := range o.Presets {
			names = append(names, p.Name)
			if p.Name == preset {
				sources = append(sources, conf.Source{Name: "preset " + p.Name, YAML: p.YAML})
			}
		}
		if len(sources) == 0 {
			return nil, fmt.Errorf("unknown preset %q%s", preset, conf.Suggest(preset, names, "known"))
		}
	}
	for _, f := range o.Files {
		b, err := o.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("reading the configuration: %w", err)
		}
		sources = append(sources, conf.Source{Name: f, YAML: b})
	}
	return sources, nil
}

func (o *LoadOptions) overrides() []conf.Source {
	var sources []conf.Source
	for _, v := range o.Overrides {
		sources = append(sources, conf.Source{Name: v.Flag, YAML: []byte(v.Value), Path: v.Path})
	}
	return sources
}

// walkFields calls visit for every field of a config that is in force, with its path and struct tag; blocks that are off are left out.
func walkFields(v reflect.Value, path []string, tag reflect.StructTag, visit func(path []string, v reflect.Value, tag reflect.StructTag)) {
	visit(path, v, tag)
	if o, ok := v.Addr().Interface().(optional); ok {
		if block, on := o.inner(); on {
			walkFields(reflect.ValueOf(block).Elem(), path, tag, visit)
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			at := path
			if key := f.Tag.Get("yaml"); key != "" {
				at = append(path[:len(path):len(path)], key)
			}
			walkFields(v.Field(i), at, f.Tag, visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walkFields(v.Index(i), append(path[:len(path):len(path)], fmt.Sprint(i)), "", visit)
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, k := range keys {
			value := reflect.New(v.Type().Elem()).Elem() // a copy: values of a map have no address
			value.Set(v.MapIndex(k))
			walkFields(value, append(path[:len(path):len(path)], k.String()), "", visit)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			walkFields(v.Elem(), path, tag, visit)
		}
	}
}
