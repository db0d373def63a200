package pipeline

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/internal/conf"
)

// Flag is a command-line flag that stands for a key of a component's configuration; [Factory.Flags] gives it to a component. It is an
// environment variable, too, see [Flag.Env]. Several components may have a flag of the same name: it then applies to each of them that is
// configured.
type Flag struct {
	Name string // without dashes: `collector.otlp.grpc.host-port`
	Doc  string // one sentence
	// Key is the path below the component that the flag sets, joined by `::`. Without a Key, the flag switches the component itself:
	// false takes it out of all pipelines and of service.extensions.
	Key string
	// Block is the path, below the component, of a block that must be configured for the flag to have a meaning; "" is the component.
	// Missing, when set, is what to say when the block is not, and makes this an error for the environment variable, too.
	Block, Missing string
	// Unless is the path, below the component, of a key that leaves the flag without a meaning where it is true; Missing says so.
	Unless string
	// Presence: the flag is true or false and the key is a block; true puts the block there, false takes it away.
	Presence bool
	// Adds: where no component of the type is configured, the flag adds one with this key, to the pipeline `traces` or the only one there
	// is: a receiver to the others, a processor in front of them. An empty value takes the component away instead.
	Adds bool
	// Value makes of the text a string, a bool, an int, a []string or a map[string]string, which becomes the key's value; nil keeps the text.
	// For a flag that Adds it may also make nothing, nil: then there is nothing to add.
	Value func(text string) (any, error)
	// Switch: the flag may be given without a value, which means true.
	Switch bool
	// Instead, when set, makes this a flag that is accepted and does nothing but warn; it says what replaces the flag.
	Instead string
}

// Env returns the name of the environment variable: the flag's in upper case, with `_` for `-` and `.`.
func (f Flag) Env() string {
	return strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToUpper(f.Name))
}

// rank orders flags by what others depend on: those that add components first, then those that decide what is configured, then values.
func (f Flag) rank() int {
	switch {
	case f.Instead != "" || f.Unless != "":
		return rankValue
	case f.Adds:
		return rankAdds
	case f.Key == "" || f.Presence || f.Switch:
		return rankStructural
	}
	return rankValue
}

const (
	rankAdds = iota
	rankStructural
	rankValue
)

// List is a [Flag.Value] for lists, separated by commas.
func List(text string) (any, error) {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items, nil
}

// HostPort is a [Flag.Value] for addresses: `:4317` is every address of the host, and a bare number is a port.
func HostPort(text string) (any, error) { return hostPort(text), nil }

// Flags returns the factory with command-line flags for its components.
func (f Factory) Flags(flags ...Flag) Factory {
	f.flags = slices.Concat(f.flags, flags)
	return f
}

// storageFlag replaces the store of a configuration, whatever its type.
const storageFlag = "span-storage.type"

// frameworkFlags are the flags that belong to no component. Their keys begin at the root of the configuration.
func frameworkFlags() []Flag {
	return []Flag{
		{Name: "log-level", Key: "service::telemetry::logs::level", Value: logLevel, Doc: "Least level that is logged: debug, info, warn or error."},
		{Name: "log-encoding", Key: "service::telemetry::logs::encoding", Doc: "How log lines are written: json, console or auto."},
		{Name: storageFlag, Doc: "Replaces the store of the configuration, and every reference to it, by an exporter of this type; " +
			"of several, separated by commas, all are written and the first is read."},
	}
}

// logLevel is the [Flag.Value] of levels as the field spells them. Those above error are error: nothing is logged at them.
func logLevel(text string) (any, error) {
	switch level := strings.ToLower(text); level {
	case "dpanic", "panic", "fatal":
		return "error", nil
	default:
		return level, nil
	}
}

// flagOwner is one meaning of a flag: that for the components of one factory, or, with kind 0, for the configuration itself.
type flagOwner struct {
	flag Flag
	kind Kind
	typ  string
}

// path returns the keys that the flag sets, for documentation.
func (o flagOwner) path() string {
	key := strings.ReplaceAll(o.flag.Key, conf.Delim, ".")
	if o.kind == 0 {
		return key
	}
	return strings.TrimSuffix(o.kind.section()+"."+o.typ+"."+key, ".")
}

// knownFlag is a flag with all its meanings.
type knownFlag struct {
	Flag
	owners []flagOwner
}

// knownFlags returns all flags that stand for configuration: the framework's, then those of the factories by name.
func knownFlags(factories []Factory) []knownFlag {
	var all []knownFlag
	add := func(o flagOwner) {
		i := slices.IndexFunc(all, func(k knownFlag) bool { return k.Name == o.flag.Name })
		if i < 0 {
			all = append(all, knownFlag{Flag: o.flag})
			i = len(all) - 1
		}
		all[i].owners = append(all[i].owners, o)
	}
	for _, f := range frameworkFlags() {
		add(flagOwner{flag: f})
	}
	own := len(all)
	for _, c := range factories {
		for _, f := range c.flags {
			add(flagOwner{f, c.kind, c.typ})
		}
	}
	slices.SortStableFunc(all[own:], func(a, b knownFlag) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// givenFlag is a flag, or its environment variable, with the value that it was given.
type givenFlag struct {
	knownFlag
	text string
	env  bool
}

// source is what messages and print-config call it.
func (g givenFlag) source() string {
	if g.env {
		return g.Env() + "=" + g.text
	}
	return "--" + g.Name + " " + g.text
}

// flagVar collects the values of one flag from the command line.
type flagVar struct {
	flag  knownFlag
	given *[]givenFlag
}

func (v flagVar) String() string { return "" }

func (v flagVar) Set(text string) error {
	*v.given = append(*v.given, givenFlag{knownFlag: v.flag, text: text})
	return nil
}

// IsBoolFlag lets package flag take a Switch without a value.
func (v flagVar) IsBoolFlag() bool { return v.flag.Switch || v.flag.Presence }

// stringList is a flag that may be repeated.
type stringList []string

func (l *stringList) String() string { return strings.Join(*l, ",") }

func (l *stringList) Set(s string) error {
	*l = append(*l, s)
	return nil
}

// parseFlags reads the command line of a subcommand and the environment into c, and returns what is no flag.
func (c *command) parseFlags(args []string, own func(*flag.FlagSet)) (operands []string, err error) {
	fs := flag.NewFlagSet("tracing", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	var files, set stringList
	fs.Var(&files, "config", "")
	fs.Var(&set, "set", "")
	fs.BoolVar(&c.load.Strict, "strict", false, "")
	known := knownFlags(c.load.Factories)
	for _, f := range known {
		fs.Var(flagVar{f, &c.load.flags}, f.Name, "")
	}
	if own != nil {
		own(fs)
	}
	if operands, err = parseOperands(fs, args); err != nil {
		return nil, err
	}
	c.load.flags = append(c.environment(known), c.load.flags...)
	c.load.Files = files
	for _, s := range set {
		o, err := ParseSet(s)
		if err != nil {
			return nil, err
		}
		c.load.Overrides = append(c.load.Overrides, o)
	}
	return operands, nil
}

// parseOperands reads flags wherever they stand, and returns what is no flag.
func parseOperands(fs *flag.FlagSet, args []string) (operands []string, err error) {
	for {
		if err := fs.Parse(args); err != nil {
			return nil, flagError(fs, err)
		}
		if fs.NArg() == 0 {
			return operands, nil
		}
		operands, args = append(operands, fs.Arg(0)), fs.Args()[1:]
	}
}

// flagError says of an unknown flag which ones there are.
func flagError(fs *flag.FlagSet, err error) error {
	if name, ok := strings.CutPrefix(err.Error(), "flag needs an argument: -"); ok {
		return fmt.Errorf("--%s has no value", name)
	}
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if errors.Is(err, flag.ErrHelp) || !unknown {
		return err
	}
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return fmt.Errorf("unknown flag --%s%s", name, conf.Suggest(name, names, "known"))
}

// environment returns the flags that are given as environment variables and not on the command line. An empty variable is as good as none.
func (c *command) environment(known []knownFlag) []givenFlag {
	var given []givenFlag
	for _, f := range known {
		onLine := slices.ContainsFunc(c.load.flags, func(g givenFlag) bool { return g.Name == f.Name })
		if text, ok := c.lookupEnv(f.Env()); ok && text != "" && !onLine {
			given = append(given, givenFlag{knownFlag: f, text: text, env: true})
		}
	}
	return given
}
