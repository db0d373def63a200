// Package foreign rewrites configurations of the OpenTelemetry Collector, which have the same
// syntax, to use the keys and components of this program. The loader applies the rules to the
// configuration that it runs and warns about each change; the command migrate applies them to a
// file and adds a comment for each change.
package foreign

import (
	"slices"
	"strings"
)

// Sections of a configuration.
const (
	receivers  = "receivers"
	processors = "processors"
	exporters  = "exporters"
	extensions = "extensions"
	connectors = "connectors"
)

// File is the configuration that the rules rewrite. A path is a list of keys; the key of a list
// item is its index.
type File interface {
	// Keys returns the keys of the map at path in the order of the file, or nil.
	Keys(path ...string) []string
	// Has reports whether there is a key at path, with or without a value.
	Has(path ...string) bool
	// Text returns the scalar at path, or "".
	Text(path ...string) string
	// Texts returns the scalars of the list at path.
	Texts(path ...string) []string
	// Drop removes a key, and the keys in with, which are useless without it. An empty reason means
	// that nothing was lost.
	Drop(path []string, reason string, with ...[]string)
	// Omit removes a key that asks for what this program always does.
	Omit(path []string)
	// Replaced removes a component or a block whose settings are at other paths now.
	Replaced(path []string, reason string)
	// Fallback reports that there is no key at path, and what that means in the Collector and in
	// this program.
	Fallback(path []string, theirs, here, effect string)
	// Move moves a value to another path, which must be unused. An empty reason means that another
	// change explains it.
	Move(from, to []string, reason string)
	// Set sets a value to a text. An empty reason means that the meaning is the same.
	Set(path []string, text, reason string)
	// SetList sets a value to a list of texts. An empty reason means that another change explains
	// it.
	SetList(path, texts []string, reason string)
	// Copy sets the value at to to the scalar at from, with a prefix. The value may be a secret.
	Copy(from, to []string, prefix, reason string)
	// Replace replaces an item of a list with others.
	Replace(list []string, item string, by ...string)
	// Refuse records that the configuration cannot run because of the key at path, and what to do.
	Refuse(path []string, problem string)
}

// Rewrite applies all rules for Collector files. known reports whether this program has components
// of a type in a section, including types that the rules do not know; takesLogs reports whether
// they can be in pipelines of logs.
func Rewrite(f File, known, takesLogs func(section, typ string) bool) {
	r := &rewriter{File: f, known: known, takesLogs: takesLogs}
	r.otherSignals()
	r.connectors()
	r.accepted()
	r.jaegerReceivers()
	r.applyRules()
	r.fallbacks()
	r.authenticators()
	r.dropTokenSources()
}

type rewriter struct {
	File
	known        func(section, typ string) bool
	takesLogs    func(section, typ string) bool
	tokenSources []string // extensions that provided tokens to components of the type kafka
}

// TypeOf returns the type of a component id: otlp of otlp/internal.
func TypeOf(id string) string {
	typ, _, _ := strings.Cut(id, "/")
	return typ
}

// at returns path with more keys, given as one text with dots.
func at(path []string, keys string) []string {
	if keys == "" {
		return path
	}
	return append(path[:len(path):len(path)], strings.Split(keys, ".")...)
}

// lists returns the paths of the lists that name components of a section.
func lists(f File, section string) (paths [][]string) {
	if section == extensions {
		return [][]string{{"service", extensions}}
	}
	for _, p := range f.Keys("service", "pipelines") {
		base := []string{"service", "pipelines", p}
		if section == connectors {
			paths = append(paths, at(base, receivers), at(base, exporters))
			continue
		}
		paths = append(paths, at(base, section))
	}
	return paths
}

// References returns the paths of the list items that name a component.
func References(f File, section, id string) (paths [][]string) {
	for _, list := range lists(f, section) {
		for i, item := range f.Texts(list...) {
			if item == id {
				paths = append(paths, append(slices.Clone(list), itoa(i)))
			}
		}
	}
	return paths
}

// dropComponent removes a component from its section and from all lists.
func (r *rewriter) dropComponent(section, id, reason string) {
	r.unlist(section, id)
	r.Drop([]string{section, id}, reason)
}

// replacedComponent removes a component whose settings have become keys of other components.
func (r *rewriter) replacedComponent(section, id, reason string) {
	r.unlist(section, id)
	r.Replaced([]string{section, id}, reason)
}

func (r *rewriter) unlist(section, id string) {
	for _, list := range lists(r, section) {
		r.Replace(list, id)
	}
}
