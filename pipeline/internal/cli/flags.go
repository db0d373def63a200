package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// flagValue is a flag.Value that collects the values of one configuration flag.
type flagValue struct {
	flag  config.Flag
	given *[]config.GivenFlag
}

func (v flagValue) String() string { return "" }

func (v flagValue) Set(text string) error {
	*v.given = append(*v.given, config.GivenFlag{Flag: v.flag, Text: text})
	return nil
}

// IsBoolFlag lets package flag accept switches without a value.
func (v flagValue) IsBoolFlag() bool { return v.flag.Switch || v.flag.Presence }

// stringList is a flag.Value for flags that may be repeated.
type stringList []string

func (l *stringList) String() string { return strings.Join(*l, ",") }

func (l *stringList) Set(s string) error {
	*l = append(*l, s)
	return nil
}

// parseFlags parses the arguments of a subcommand and the environment into c.load, and returns the
// arguments that are not flags.
func (c *command) parseFlags(args []string, own func(*flag.FlagSet)) (operands []string, err error) {
	fs := flag.NewFlagSet("tracing", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	var files, set stringList
	known := c.defineConfigured(fs, &files, &set)
	if own != nil {
		own(fs)
	}
	if operands, err = parseOperands(fs, args); err != nil {
		return nil, err
	}
	c.load.Flags = append(c.environment(known), c.load.Flags...)
	c.load.Files = files
	for _, s := range set {
		o, err := config.ParseSet(s)
		if err != nil {
			return nil, err
		}
		c.load.Overrides = append(c.load.Overrides, o)
	}
	return operands, nil
}

// defineConfigured defines the flags of commands that load a configuration, and returns the flags
// that set keys.
func (c *command) defineConfigured(fs *flag.FlagSet, files, set *stringList) []config.Flag {
	fs.Var(files, "config", "Configuration file. May be repeated; later files override earlier ones.")
	fs.Var(set, "set", "Override one value, as PATH=VALUE. Parts of the path are joined by \"::\", or by dots if no key contains a dot.")
	fs.BoolVar(&c.load.Strict, "strict", false, "Treat warnings as errors.")
	known := config.Flags(c.load.Factories)
	for _, f := range known {
		fs.Var(flagValue{f, &c.load.Flags}, f.Name, f.Doc)
	}
	return known
}

// parseOperands parses flags, which may precede and follow other arguments, and returns the other
// arguments.
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

// flagError improves the error of package flag, with a suggestion for unknown flags.
func flagError(fs *flag.FlagSet, err error) error {
	if name, ok := strings.CutPrefix(err.Error(), "flag needs an argument: -"); ok {
		return fmt.Errorf("--%s has no value", name)
	}
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if errors.Is(err, flag.ErrHelp) || !unknown {
		return err
	}
	return unknownFlag(fs, name)
}

// suggestedFlags is the number of similar flags that the error for an unknown flag lists.
const suggestedFlags = 3

// unknownFlag returns the error for an unknown flag, with the flags that it abbreviates or else the
// most similar ones.
func unknownFlag(fs *flag.FlagSet, name string) error {
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	nearest := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, name) })
	if len(nearest) == 0 || len(nearest) > suggestedFlags {
		var distance int
		if nearest, distance = yamltree.Nearest(name, names, suggestedFlags); distance > 1+len(name)/2 {
			nearest = nil
		}
	}
	for i := range nearest {
		nearest[i] = "--" + nearest[i]
	}
	last := len(nearest) - 1
	if last < 0 {
		return fmt.Errorf("unknown flag --%s", name)
	}
	similar := nearest[last]
	if last > 0 {
		similar = strings.Join(nearest[:last], ", ") + " or " + similar
	}
	return fmt.Errorf("unknown flag --%s; did you mean %s?", name, similar)
}

// environment returns the flags that are set as environment variables and not on the command line.
func (c *command) environment(known []config.Flag) []config.GivenFlag {
	return slices.DeleteFunc(config.Variables(known, c.environ()), func(v config.GivenFlag) bool {
		return slices.ContainsFunc(c.load.Flags, func(g config.GivenFlag) bool { return g.Flag.Name == v.Flag.Name })
	})
}

// environ returns the environment as `NAME=value`.
func (c *command) environ() []string {
	if c.load.Environ != nil {
		return c.load.Environ()
	}
	return os.Environ()
}
