package cli

import (
	"context"
	"embed"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// completeCommand is the command that the completion scripts call: its arguments are the words of
// the command line up to the cursor, the last one possibly empty. It prints a candidate for the
// last word per line, with a description after a tab, or completeFiles or completeFolders.
const completeCommand = "__complete"

// Lines of the output that make the shell complete names of files or folders.
const (
	completeFiles   = ":files"
	completeFolders = ":folders"
)

const operandShell = "SHELL"

//go:embed completion
var completionScripts embed.FS

var completionShells = []string{"bash", "zsh", "fish"}

// completion prints the script of a shell.
func (c *command) completion(context.Context) int {
	if !slices.Contains(completionShells, c.operand) {
		return c.misuse(c.chosen, fmt.Errorf("unknown shell %q; write bash, zsh or fish", c.operand))
	}
	script, err := completionScripts.ReadFile("completion/tracing." + c.operand)
	if err != nil {
		return c.fail(err)
	}
	c.stdout.Write(script) //nolint:errcheck // a terminal
	return exitOK
}

// candidate is a possible word.
type candidate struct{ word, doc string }

// complete prints the candidates for the last of words.
func (c *command) complete(words []string) int {
	if len(words) == 0 {
		words = []string{""}
	}
	before, last := words[:len(words)-1], words[len(words)-1]
	for _, x := range c.candidates(before, last) {
		doc, _, _ := strings.Cut(x.doc, "; ")
		if strings.HasPrefix(x.word, last) || strings.HasPrefix(x.word, ":") {
			fmt.Fprintf(c.stdout, "%s\t%s\n", x.word, doc)
		}
	}
	return exitOK
}

// candidates returns the candidates for the word last after the words before.
func (c *command) candidates(before []string, last string) []candidate {
	u, operands := c.completed(before)
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	if u.flags != nil {
		u.flags(fs)
	}
	if u.configured {
		c.defineConfigured(fs, new(stringList), new(stringList))
	}
	if name, _, ok := strings.Cut(last, "="); ok && strings.HasPrefix(name, "-") {
		return withPrefix(name+"=", c.flagValues(fs.Lookup(strings.TrimLeft(name, "-"))))
	}
	if n := len(before); n > 0 && strings.HasPrefix(before[n-1], "-") && !strings.Contains(before[n-1], "=") {
		if f := fs.Lookup(strings.TrimLeft(before[n-1], "-")); f != nil && !isBool(f) {
			return c.flagValues(f)
		}
	}
	if strings.HasPrefix(last, "-") {
		var all []candidate
		fs.VisitAll(func(f *flag.Flag) {
			if f.Usage != "" { // flags without effect have none
				all = append(all, candidate{dashed(f), f.Usage})
			}
		})
		return append(all, candidate{"--help", "Prints help."})
	}
	return c.operandValues(u, operands)
}

// completed returns the command that words begin with, and the remaining words that are not flags.
// Without a command, it returns the one that runs the program.
func (c *command) completed(words []string) (u usage, operands []string) {
	u = c.subcommands()[0].usage
	for _, known := range c.usages() {
		if name := strings.Fields(known.name); len(words) >= len(name) && slices.Equal(words[:len(name)], name) {
			u, words = known, words[len(name):]
			break
		}
	}
	for _, w := range words {
		if !strings.HasPrefix(w, "-") {
			operands = append(operands, w)
		}
	}
	return u, operands
}

// operandValues returns the candidates for the next operand.
func (c *command) operandValues(u usage, operands []string) []candidate {
	var presets []candidate
	for _, p := range c.load.Presets {
		presets = append(presets, candidate{p.Name, p.Doc})
	}
	switch {
	case u.name == "help":
		return append(c.nextWords(operands), append(presets, candidate{"flags", "all flags of the configuration"})...)
	case u.name == "" && len(operands) == 0:
		return append(c.nextWords(nil), presets...)
	case u.name == "" && len(c.group(operands[0])) > 0:
		return c.nextWords(operands)
	case len(operands) > 0:
		return nil
	case u.name == "completion":
		return words(completionShells)
	case u.name == "components":
		return c.componentTypes()
	case u.configured:
		return presets
	case strings.Contains(u.args, "FILE"):
		return []candidate{{completeFiles, ""}}
	case strings.HasPrefix(strings.TrimPrefix(u.args, "["), "DIR"):
		return []candidate{{completeFolders, ""}}
	}
	return nil
}

// nextWords returns the words that can follow operands in command names.
func (c *command) nextWords(operands []string) []candidate {
	next := map[string]string{}
	for _, u := range c.usages() {
		name := strings.Fields(u.name)
		if len(name) <= len(operands) || !slices.Equal(name[:len(operands)], operands) {
			continue
		}
		word, doc := name[len(operands)], u.doc
		if len(name) > len(operands)+1 {
			doc = u.group
		}
		next[word] = doc
	}
	var all []candidate
	for _, word := range slices.Sorted(maps.Keys(next)) {
		all = append(all, candidate{word, next[word]})
	}
	return all
}

func (c *command) componentTypes() []candidate {
	types := map[string]string{}
	for _, f := range c.load.Factories {
		types[f.Type()] = f.Kind().String()
	}
	var all []candidate
	for _, typ := range slices.Sorted(maps.Keys(types)) {
		all = append(all, candidate{typ, types[typ]})
	}
	return all
}

// flagValues returns the candidates for the value of a flag.
func (c *command) flagValues(f *flag.Flag) []candidate {
	if f == nil {
		return nil
	}
	last := f.Name[strings.LastIndexAny(f.Name, ".-")+1:]
	switch {
	case isBool(f):
		return words([]string{"true", "false"})
	case f.Name == "log-level":
		return words([]string{"debug", "info", "warn", "error"})
	case f.Name == "log-encoding":
		return words([]string{"json", "console", "auto"})
	case f.Name == "span-storage.type":
		return words(c.stores())
	case slices.Contains([]string{"dir"}, last):
		return []candidate{{completeFolders, ""}}
	case slices.Contains([]string{"config", "file", "output", "cert", "key", "ca", "files"}, last):
		return []candidate{{completeFiles, ""}}
	}
	return nil
}

// stores returns the types of exporters that can be read.
func (c *command) stores() []string {
	var types []string
	for _, f := range c.load.Factories {
		if f.Kind() == pipeline.KindExporter {
			types = append(types, f.Type())
		}
	}
	return types
}

func words(all []string) []candidate {
	out := make([]candidate, len(all))
	for i, w := range all {
		out[i].word = w
	}
	return out
}

// withPrefix adds a prefix to candidates that are not instructions for the shell.
func withPrefix(prefix string, all []candidate) []candidate {
	for i := range all {
		if !strings.HasPrefix(all[i].word, ":") {
			all[i].word = prefix + all[i].word
		}
	}
	return all
}

func isBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}
