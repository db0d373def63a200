package cli

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tracing-backend/tracing/pipeline/commands"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
)

// usage describes a command for help texts and completion.
type usage struct {
	name, args, doc string
	group           string // heading in the overview
	examples        []string
	configured      bool                // whether the command loads a configuration and has configuration flags
	flags           func(*flag.FlagSet) // defines the other flags; may be nil
}

// line returns the synopsis of the command.
func (u *usage) line() string {
	return strings.Join(strings.Fields("tracing "+u.name+" "+u.args), " ")
}

// helpCommand returns the command line that prints help for the command.
func (u *usage) helpCommand() string {
	if u.name == "" {
		return "tracing help flags"
	}
	return "tracing help " + u.name
}

// usages returns all commands with a name.
func (c *command) usages() []usage {
	var all []usage
	for _, s := range c.subcommands()[1:] {
		all = append(all, s.usage)
	}
	for _, own := range c.ownCommands() {
		all = append(all, ownUsage(own))
	}
	return all
}

// allFlags prints help with the flags that have no effect.
const allFlags = "--help=all"

func isHelp(word string) bool { return word == "help" || isHelpFlag(word) }

func isHelpFlag(word string) bool {
	return slices.Contains([]string{"--help", "-help", "-h", allFlags}, word)
}

// help prints an overview, or help for the command, group or preset named by words.
func (c *command) help(words []string) int {
	last := len(words) - 1
	withAll := last >= 0 && (words[last] == "all" || words[last] == allFlags)
	if withAll {
		words = words[:last]
	}
	name := strings.Join(words, " ")
	all := c.usages()
	i := slices.IndexFunc(all, func(u usage) bool { return u.name == name })
	switch {
	case name == "":
		c.overview()
	case name == "flags":
		c.flagsHelp(withAll)
	case i >= 0:
		c.commandHelp(all[i])
	case slices.Contains(c.presets(), name):
		c.presetHelp(name, withAll)
	case len(c.group(name)) > 0:
		c.groupHelp(c.stdout, name, c.group(name))
	default:
		return c.unknownCommand(words)
	}
	return exitOK
}

// commandHelp prints the help of one command.
func (c *command) commandHelp(u usage) {
	fmt.Fprintf(c.stdout, "usage: %s\n\n%s.\n", u.line(), strings.ToUpper(u.doc[:1])+u.doc[1:])
	if len(u.examples) > 0 {
		fmt.Fprintf(c.stdout, "\nexamples:\n  %s\n", strings.Join(u.examples, "\n  "))
	}
	fs := flag.NewFlagSet("tracing", flag.ContinueOnError)
	if u.flags != nil {
		u.flags(fs)
	}
	writeFlags(c.stdout, "\nflags:\n", fs)
	if u.configured {
		c.writePresets()
		fmt.Fprint(c.stdout, "\nmost common flags of the configuration:\n")
		writeFlags(c.stdout, "", c.frequentFlags())
		fmt.Fprint(c.stdout, "\nRun \"tracing help flags\" for all of them.\n")
	}
}

// presetHelp prints the flags that have an effect on a preset and, if all is set, the names of
// flags that have none.
func (c *command) presetHelp(name string, all bool) {
	preset := &c.load.Presets[slices.Index(c.presets(), name)]
	fmt.Fprintf(c.stdout, "usage: tracing %s [flags]\n\nRun the preset %s.\n", name, strings.TrimSuffix(name+": "+preset.Doc, ": "))
	fmt.Fprintf(c.stdout, "\nexamples:\n  tracing %[1]s\n  tracing %[1]s --config changes.yaml\n  tracing print-config %[1]s\n", name)
	fmt.Fprint(c.stdout, "\nflags:\n")
	with, without := config.FlagDocsByEffect(c.load.Factories, preset)
	c.writeFlagDocs(with)
	c.writeWithout(without, "tracing "+name+" "+allFlags, all)
}

// writeFlagDocs writes the flags of the framework and of components.
func (c *command) writeFlagDocs(docs []config.FlagDoc) {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	c.defineConfigured(fs, new(stringList), new(stringList))
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	for _, name := range []string{"config", "set", "strict"} {
		writeFlag(w, fs.Lookup(name))
	}
	for _, d := range docs {
		fmt.Fprintf(w, "  --%s\t%s\n", d.Name, d.Doc)
	}
	w.Flush() //nolint:errcheck // a terminal
}

// writeWithout writes the flags without an effect, or only their number and how to list them.
func (c *command) writeWithout(docs []config.FlagDoc, how string, all bool) {
	switch {
	case len(docs) == 0:
		return
	case !all:
		fmt.Fprintf(c.stdout, "\n%d flags of other tracing systems have no effect or are refused. Run \"%s\" for their names.\n", len(docs), how)
		return
	}
	fmt.Fprint(c.stdout, "\nflags of other tracing systems that have no effect or are refused:\n")
	for _, d := range docs {
		fmt.Fprintf(c.stdout, "  --%s\n", d.Name)
	}
	fmt.Fprint(c.stdout, "\ndocs/configuration.md says what replaces them.\n")
}

// frequentFlags returns the flags of the configuration that every help text shows.
func (c *command) frequentFlags() *flag.FlagSet {
	all, some := flag.NewFlagSet("", flag.ContinueOnError), flag.NewFlagSet("", flag.ContinueOnError)
	names := []string{"config", "set", "strict"}
	for _, f := range c.defineConfigured(all, new(stringList), new(stringList)) {
		if f.Whole {
			names = append(names, f.Name)
		}
	}
	for _, name := range names {
		if f := all.Lookup(name); f.Usage != "" { // not those without an effect
			some.Var(f.Value, f.Name, f.Usage)
		}
	}
	return some
}

// flagsHelp prints the configuration flags that have an effect, or all flags if all is set, and all
// variables.
func (c *command) flagsHelp(all bool) {
	fmt.Fprint(c.stdout, "Flags of the commands that load a configuration. The flags from --data-dir on set configuration keys; each is\n"+
		"also an environment variable: LOG_LEVEL for --log-level, "+commands.VarDataDir+" for --data-dir.\n\n")
	with, without := config.FlagDocsByEffect(c.load.Factories, nil)
	c.writeFlagDocs(with)
	c.writeWithout(without, "tracing help flags all", all)
	c.writeVariables()
}

// writeFlags writes the flags after a heading, or nothing if there are none.
func writeFlags(out io.Writer, heading string, fs *flag.FlagSet) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fs.VisitAll(func(f *flag.Flag) {
		io.WriteString(w, heading) //nolint:errcheck // a terminal
		heading = ""
		writeFlag(w, f)
	})
	w.Flush() //nolint:errcheck // a terminal
}

// writeFlag writes a flag with its default, unless the default is the zero value or is in the text.
func writeFlag(w io.Writer, f *flag.Flag) {
	_, doc := flag.UnquoteUsage(f)
	if !slices.Contains([]string{"", "0", "0s", "false"}, f.DefValue) {
		doc += " (default " + f.DefValue + ")"
	}
	fmt.Fprintf(w, "  %s\t%s\n", dashed(f), doc)
}

// dashed returns the name of a flag as it is usually written.
func dashed(f *flag.Flag) string {
	if len(f.Name) == 1 {
		return "-" + f.Name
	}
	return "--" + f.Name
}

// groupHelp prints the commands of a group.
func (c *command) groupHelp(out io.Writer, word string, group []commands.Command) {
	for i, own := range group {
		u := ownUsage(own)
		head := "       "
		if i == 0 {
			head = "usage: "
		}
		fmt.Fprintf(out, "%s%s\n           %s\n", head, u.line(), u.doc)
	}
	fmt.Fprintf(out, "\nRun \"tracing help %s COMMAND\" for the flags of a command.\n", word)
}

// overview prints all commands, presets and variables.
func (c *command) overview() {
	fmt.Fprint(c.stdout, "usage: tracing [PRESET] [flags]   run a preset (by default the first one) or the configuration given by --config\n"+
		"       tracing COMMAND            run a command\n")
	c.writePresets()
	all := c.usages()
	var groups []string
	width := 0
	for _, u := range all {
		width = max(width, len(u.name))
		if !slices.Contains(groups, u.group) && u.group != groupOther {
			groups = append(groups, u.group)
		}
	}
	for _, g := range append(groups, groupOther) {
		fmt.Fprintf(c.stdout, "\n%s:\n", cmp.Or(g, "commands"))
		for _, u := range all {
			if doc, _, _ := strings.Cut(u.doc, "; "); u.group == g {
				fmt.Fprintf(c.stdout, "  %-*s  %s\n", width, u.name, doc)
			}
		}
	}
	c.writeVariables()
	fmt.Fprint(c.stdout, "\nRun \"tracing help COMMAND\" for the flags of a command, \"tracing help flags\" for configuration flags.\n")
}

func (c *command) writePresets() {
	fmt.Fprint(c.stdout, "\npresets:\n")
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	for _, p := range c.load.Presets {
		fmt.Fprintf(w, "  %s\t%s\n", p.Name, cmp.Or(p.Doc, "preset of this program"))
	}
	w.Flush() //nolint:errcheck // a terminal
}

func (c *command) writeVariables() {
	fmt.Fprint(c.stdout, "\nenvironment variables:\n")
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	for _, v := range commands.Variables() {
		fmt.Fprintf(w, "  %s\t%s\n", v.Name, v.Doc)
	}
	w.Flush() //nolint:errcheck // a terminal
}
