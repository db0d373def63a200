package config

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/commands"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// frameworkFlags returns the flags of the framework's own keys.
func frameworkFlags() []pipeline.Flag {
	return []pipeline.Flag{
		{Name: "data-dir", Whole: true, Key: "service::data_dir", Variable: commands.VarDataDir,
			Doc: "Folder for the files of all components."},
		{Name: "log-level", Whole: true, Key: "service::telemetry::logs::level", Value: logLevel,
			Doc: "Minimum level of log lines: debug, info, warn or error."},
		{Name: "log-encoding", Whole: true, Key: "service::telemetry::logs::encoding",
			Doc: "Format of log lines: json, console or auto."},
	}
}

// logLevel is the [pipeline.Flag.Value] of log levels. It accepts upper case, and replaces levels
// above error, at which nothing is logged, by error.
func logLevel(text string) (any, error) {
	switch level := strings.ToLower(text); level {
	case "dpanic", "panic", "fatal":
		return "error", nil
	default:
		return level, nil
	}
}

// flagOwner is one meaning of a flag: for the components of one factory or, with kind 0, for the
// configuration itself.
type flagOwner struct {
	flag pipeline.Flag
	kind pipeline.Kind
	typ  string
}

// path returns the key that the flag sets, for documentation.
func (o flagOwner) path() string {
	key := strings.ReplaceAll(o.flag.Key, yamltree.Delim, ".")
	if o.kind == 0 {
		return key
	}
	return strings.TrimSuffix(o.kind.Section()+"."+o.typ+"."+key, ".")
}

// effect describes the effect of the flag, for documentation.
func (o flagOwner) effect() string {
	switch {
	case o.flag.Instead != "":
		return "no effect: " + o.flag.Instead
	case o.flag.Refused != "":
		return "error: " + o.flag.Refused
	case o.flag.Key == "" && o.kind != 0:
		return "false removes " + o.path() + " from the configuration"
	case o.flag.Key == "":
		return "see meaning"
	case o.flag.Presence:
		return "enables or disables " + o.path()
	case o.flag.Selects:
		return "may enable " + o.path()
	case o.flag.Adds:
		return "sets " + o.path() + "; adds the " + o.kind.String() + " if there is none"
	}
	return "sets " + o.path()
}

func flagOwners(f pipeline.Factory) []flagOwner {
	owners := make([]flagOwner, len(f.FlagList()))
	for i, flag := range f.FlagList() {
		owners[i].flag = flag
		if !flag.Whole {
			owners[i].kind, owners[i].typ = f.Kind(), f.Type()
		}
	}
	return owners
}

// Flag is a command-line flag with all its meanings.
type Flag struct {
	pipeline.Flag
	owners []flagOwner
}

// Flags returns all flags that set configuration keys: first the framework's own, then other flags
// of the whole configuration, then the flags of components by name.
func Flags(factories []pipeline.Factory) []Flag {
	var all []Flag
	index := map[string]int{} // in all, by name
	add := func(o flagOwner) {
		i, ok := index[o.flag.Name]
		if !ok {
			i, all = len(all), append(all, Flag{Flag: o.flag})
			index[o.flag.Name] = i
		}
		all[i].owners = append(all[i].owners, o)
	}
	for _, f := range frameworkFlags() {
		add(flagOwner{flag: f})
	}
	for _, f := range factories {
		for _, o := range flagOwners(f) {
			add(o)
		}
	}
	slices.SortStableFunc(all, func(a, b Flag) int {
		switch {
		case a.Whole && b.Whole:
			return 0
		case a.Whole:
			return -1
		case b.Whole:
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all
}

// FlagDoc documents a flag or a family of flags.
type FlagDoc struct {
	Name   string // without dashes; `es.*` for a family
	Env    string // the environment variable; "" if there is none
	Doc    string // what the flag means
	effect string // effect on the configuration
}

// FlagDocs returns the documentation of all flags, with one entry for each family.
func FlagDocs(factories []pipeline.Factory) []FlagDoc { return flagDocs(Flags(factories)) }

// FlagDocsByEffect returns the documentation of the flags that have an effect on a preset, or on
// any configuration if preset is nil, and of flags that have none in any configuration.
func FlagDocsByEffect(factories []pipeline.Factory, preset *Preset) (with, without []FlagDoc) {
	var effective, others []Flag
	for _, f := range Flags(factories) {
		switch {
		case f.Instead != "" || f.Refused != "":
			others = append(others, f)
		case preset == nil || slices.ContainsFunc(f.owners, preset.concerns):
			effective = append(effective, f)
		}
	}
	return flagDocs(effective), flagDocs(others)
}

// concerns reports whether a flag changes the preset, either one of its components or the whole.
func (p *Preset) concerns(o flagOwner) bool {
	if o.kind == 0 || o.flag.Adds {
		return true
	}
	var sections map[string]any
	if err := yaml.Unmarshal(p.YAML, &sections); err != nil {
		return false
	}
	components, _ := sections[o.kind.Section()].(map[string]any)
	for id := range components {
		if typ, _, _ := strings.Cut(id, "/"); typ == o.typ {
			return true
		}
	}
	return false
}

func flagDocs(flags []Flag) []FlagDoc {
	var docs []FlagDoc
	families := map[string]bool{}
	for _, f := range flags {
		d := f.doc()
		if f.Family == "" || !families[d.Name] {
			docs = append(docs, d)
		}
		families[d.Name] = f.Family != ""
	}
	return docs
}

func (f Flag) doc() FlagDoc {
	d := FlagDoc{Name: f.Name, Env: f.Env(), Doc: f.Doc}
	if f.Family != "" {
		d.Name, d.Env = f.Family+".*", pipeline.Flag{Name: f.Family}.Env()+"_*"
	}
	if f.CommandLine {
		d.Env = ""
	}
	switch {
	case f.Instead != "":
		d.Doc = "Has no effect: " + f.Instead + "."
	case f.Refused != "":
		d.Doc = "Not supported: " + f.Refused + "."
	}
	effects := make([]string, len(f.owners))
	for i, o := range f.owners {
		effects[i] = o.effect()
	}
	d.effect = strings.Join(effects, "; ")
	return d
}

// GivenFlag is a flag, or its environment variable, with a value.
type GivenFlag struct {
	Flag Flag
	Text string
	Env  bool
}

// source returns the flag without its value, which may be a secret, for messages and print-config.
func (g GivenFlag) source() string {
	if g.Env {
		return "environment " + g.Flag.Env()
	}
	return "--" + g.Flag.Name
}

// Ranks of flags. A flag may depend on the effects of flags with a lower rank.
const (
	rankAdds       = iota // adds components
	rankApplied           // is a function; may add an exporter, to which other flags apply
	rankStructural        // adds or removes blocks and components
	rankValue             // sets values
	rankOptional          // sets values if others are set
)

func (g GivenFlag) rank() int {
	f := g.Flag
	switch {
	case f.Apply != nil:
		return rankApplied
	case f.Optional != "":
		return rankOptional
	case f.Instead != "" || f.Refused != "" || f.Unless != "" || f.Missing != "":
		return rankValue
	case f.Adds:
		return rankAdds
	case f.Key == "" || f.Presence || f.Selects || f.Switch:
		return rankStructural
	}
	return rankValue
}
