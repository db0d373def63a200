package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// FlagEdit is one value of a configuration that a flag or environment variable sets. The value is
// YAML: an empty value means a block with its defaults, and null removes the key.
type FlagEdit struct {
	Flag string // `--name`, or the name of the variable
	Path []string
	YAML string
}

// FlagNote says why a flag or environment variable has no effect or, with Mistake, why it is a
// mistake or not supported. If Text is empty, the flag only confirms the program's behavior.
type FlagNote struct {
	Flag    string
	Text    string
	Mistake bool
	Unknown bool // it is a variable that no flag has
}

// FlagEffects returns the effect of command-line arguments, and of variables given as `NAME=value`,
// on the configuration of o: the edits in order, and a note for each flag or variable that edits
// nothing. Stores that are not supported are replaced.
func FlagEffects(o Options, args, environ []string) (edits []FlagEdit, notes []FlagNote, err error) {
	o.setDefaults()
	o.explain = true
	sources, err := o.sources()
	if err != nil {
		return nil, nil, err
	}
	known := Flags(o.Factories)
	given, notes := parseArgs(known, args)
	onCommandLine := func(v GivenFlag) bool {
		return slices.ContainsFunc(given, func(g GivenFlag) bool { return g.Flag.Name == v.Flag.Name })
	}
	set := Variables(known, environ)
	notes = append(notes, unused(environ, set)...)
	for _, v := range set {
		if onCommandLine(v) {
			notes = append(notes, FlagNote{Flag: v.Flag.Env(), Text: "has no effect: the flag --" + v.Flag.Name + " has precedence"})
		}
	}
	o.Flags = append(slices.DeleteFunc(set, onCommandLine), given...)
	out := newOverlay(&o, sources)
	for _, s := range out.sources {
		edits = append(edits, FlagEdit{flagName(s.Name), s.Path, string(s.YAML)})
	}
	for _, g := range o.Flags {
		notes = append(notes, out.notes(g)...)
	}
	return edits, notes, nil
}

// unused returns notes about variables that do not belong to a flag.
func unused(environ []string, set []GivenFlag) (notes []FlagNote) {
	for _, variable := range environ {
		name, text, _ := strings.Cut(variable, "=")
		note := FlagNote{Flag: name, Text: "has no effect: unknown variable", Unknown: true}
		switch {
		case slices.ContainsFunc(set, func(g GivenFlag) bool { return flagName(g.source()) == name }):
			continue
		case text == "":
			note.Text = "has no effect: without a value, it counts as unset"
		case isService(name, text):
			note.Text = "has no effect: Kubernetes sets it for another service"
		}
		if !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}

// flagName shortens the source of a value.
func flagName(source string) string { return strings.TrimPrefix(source, "environment ") }

// notes returns the problems and warnings about a flag.
func (o *overlay) notes(g GivenFlag) (notes []FlagNote) {
	source := g.source()
	add := func(problems yamltree.Problems, mistake bool) {
		for _, p := range problems {
			if p.Pos.Source != source {
				continue
			}
			if note := (FlagNote{Flag: flagName(source), Text: p.Msg, Mistake: mistake}); !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	add(o.problems, true)
	add(o.warnings, false)
	edited := slices.ContainsFunc(o.sources, func(s yamltree.Source) bool { return s.Name == source })
	if len(notes) == 0 && !edited {
		notes = append(notes, FlagNote{Flag: flagName(source)})
	}
	return notes
}

// parseArgs returns the flags in args, and a mistake for every argument that is not a flag.
func parseArgs(known []Flag, args []string) (given []GivenFlag, mistakes []FlagNote) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name, text, hasText := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !strings.HasPrefix(arg, "-") || name == "" {
			mistakes = append(mistakes, FlagNote{Flag: arg, Text: "unexpected argument", Mistake: true})
			continue
		}
		i := slices.IndexFunc(known, func(f Flag) bool { return f.Name == name })
		isSwitch := i >= 0 && (known[i].Switch || known[i].Presence)
		switch {
		case hasText:
		case isSwitch:
			text = "true"
		case len(args) > 0 && !strings.HasPrefix(args[0], "--"):
			text, args = args[0], args[1:]
		}
		if i >= 0 {
			given = append(given, GivenFlag{Flag: known[i], Text: text})
			continue
		}
		mistakes = append(mistakes, FlagNote{Flag: "--" + name, Text: "unknown flag" + similarFlags(name, known), Mistake: true})
	}
	return given, mistakes
}

func similarFlags(name string, known []Flag) string {
	var names []string
	for _, f := range known {
		names = append(names, f.Name)
	}
	nearest, _ := yamltree.Nearest(name, names, 1)
	if len(nearest) == 0 {
		return ""
	}
	return fmt.Sprintf("; did you mean --%s?", nearest[0])
}
