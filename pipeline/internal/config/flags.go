package config

import (
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// storageFlag is the name of the flag that replaces the store of a configuration.
const storageFlag = "span-storage.type"

// frameworkFlags returns the flags that do not belong to a component. Their keys begin at the root
// of the configuration.
func frameworkFlags() []pipeline.Flag {
	return []pipeline.Flag{
		{Name: "data-dir", Key: "service::data_dir", Variable: pipeline.VarDataDir,
			Doc: "Folder for the files of all components."},
		{Name: "log-level", Key: "service::telemetry::logs::level", Value: logLevel,
			Doc: "Minimum level of log lines: debug, info, warn or error."},
		{Name: "log-encoding", Key: "service::telemetry::logs::encoding", Doc: "Format of log lines: json, console or auto."},
		{Name: storageFlag, Doc: "Type of exporter that replaces the store of the configuration and every reference to it. " +
			"If it lists several types, separated by commas, spans are written to all of them and read from the first."},
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
	case o.flag.Key == "" && o.kind != 0:
		return "false removes " + o.path() + " from the configuration"
	case o.flag.Key == "":
		return "see meaning"
	case o.flag.Presence:
		return "enables or disables " + o.path()
	case o.flag.Adds:
		return "sets " + o.path() + "; adds the " + o.kind.String() + " if there is none"
	}
	return "sets " + o.path()
}

func flagOwners(f pipeline.Factory) []flagOwner {
	owners := make([]flagOwner, len(f.FlagList()))
	for i, flag := range f.FlagList() {
		owners[i] = flagOwner{flag, f.Kind(), f.Type()}
	}
	return owners
}

// Flag is a command-line flag with all its meanings.
type Flag struct {
	pipeline.Flag
	owners []flagOwner
}

// Flags returns all flags that set configuration keys: those of the framework, then those of the
// factories by name.
func Flags(factories []pipeline.Factory) []Flag {
	var all []Flag
	add := func(o flagOwner) {
		i := slices.IndexFunc(all, func(f Flag) bool { return f.Name == o.flag.Name })
		if i < 0 {
			all = append(all, Flag{Flag: o.flag})
			i = len(all) - 1
		}
		all[i].owners = append(all[i].owners, o)
	}
	for _, f := range frameworkFlags() {
		add(flagOwner{flag: f})
	}
	framework := len(all)
	for _, f := range factories {
		for _, o := range flagOwners(f) {
			add(o)
		}
	}
	slices.SortStableFunc(all[framework:], func(a, b Flag) int { return strings.Compare(a.Name, b.Name) })
	return all
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

// Ranks of flags. A flag may depend on the configuration that flags of lower rank result in.
const (
	rankAdds       = iota // adds components
	rankStore             // replaces the store; may add an exporter, to which other flags apply
	rankStructural        // adds or removes blocks and components
	rankValue             // sets values
)

func (g GivenFlag) rank() int {
	f := g.Flag
	switch {
	case f.Name == storageFlag:
		return rankStore
	case f.Instead != "" || f.Unless != "":
		return rankValue
	case f.Adds:
		return rankAdds
	case f.Key == "" || f.Presence || f.Switch:
		return rankStructural
	}
	return rankValue
}
