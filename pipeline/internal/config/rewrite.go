package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/internal/foreign"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// foreignFile applies the rules for other programs' files to the merged tree. Each change logs a
// warning.
type foreignFile struct {
	*loader
	own bool // it was written for this program
}

var _ foreign.File = foreignFile{}

// rewriteForeign applies these rules.
func (l *loader) rewriteForeign() {
	own := foreign.IsOwn(foreignFile{loader: l})
	known := func(section, typ string) bool {
		_, known := l.factoryIn(section, typ)
		return known
	}
	foreign.Rewrite(foreignFile{l, own}, known, func(section, typ string) bool {
		f, _ := l.factoryIn(section, typ)
		return f.TakesLogs()
	})
}

// factoryIn returns the factory of a type in a section.
func (l *loader) factoryIn(section, typ string) (f pipeline.Factory, known bool) {
	for _, kind := range kinds {
		if kind.Section() == section {
			f, known = l.factories[kind][typ]
		}
	}
	return f, known
}

// Keys implements foreign.File.
func (f foreignFile) Keys(path ...string) []string { return f.tree.Keys(path...) }

// Has implements foreign.File.
func (f foreignFile) Has(path ...string) bool { return f.tree.Has(path...) }

// Text implements foreign.File.
func (f foreignFile) Text(path ...string) string {
	s, _ := f.tree.Get(path...).(yamltree.Scalar)
	return s.Text
}

// Texts implements foreign.File.
func (f foreignFile) Texts(path ...string) []string { return listItems(f.tree, path) }

// Drop implements foreign.File.
func (f foreignFile) Drop(path []string, reason string, with ...[]string) {
	pos := f.tree.KeyPos(path...)
	var also []string
	for _, w := range with {
		also = append(also, fmt.Sprintf("%s (%s)", yamltree.Display(w...), f.tree.KeyPos(w...).Lines()))
		f.tree.Remove(w...)
	}
	f.tree.Remove(path...)
	switch {
	case reason == "":
	case len(also) > 0:
		f.warn(pos, path, "%s left out: %s; left out with it: %s", pos.Lines(), reason, strings.Join(also, ", "))
	default:
		f.warn(pos, path, "%s left out: %s", pos.Lines(), reason)
	}
}

// Omit implements foreign.File.
func (f foreignFile) Omit(path []string) { f.tree.Remove(path...) }

// Replaced implements foreign.File.
func (f foreignFile) Replaced(path []string, reason string) {
	pos := f.tree.KeyPos(path...)
	f.tree.Remove(path...)
	f.warn(pos, path, "%s: %s", pos.Lines(), reason)
}

// Fallback implements foreign.File. In a file that was written for this program, an absent key
// means this program's default.
func (f foreignFile) Fallback(path []string, theirs, here, effect string) {
	if !f.own {
		f.warn(f.tree.KeyPos(path[:2]...), path, "not set: %s is used, %s by the OpenTelemetry Collector: %s; set it", here, theirs, effect)
	}
}

// Move implements foreign.File.
func (f foreignFile) Move(from, to []string, reason string) {
	if reason != "" {
		f.warn(f.tree.KeyPos(from...), from, "%s", reason)
	}
	f.tree.Move(from, to)
}

// Set implements foreign.File.
func (f foreignFile) Set(path []string, text, reason string) {
	f.tree.SetText(path, text)
	if reason != "" {
		f.warn(f.valuePos(path), path, "%s", reason)
	}
}

// SetList implements foreign.File.
func (f foreignFile) SetList(path, texts []string, reason string) {
	f.tree.SetTexts(path, texts)
	if reason != "" {
		f.warn(f.valuePos(path), path, "%s", reason)
	}
}

// Copy implements foreign.File.
func (f foreignFile) Copy(from, to []string, prefix, reason string) {
	f.tree.Copy(from, to, prefix)
	if reason != "" {
		f.warn(f.valuePos(to), to, "%s", reason)
	}
}

// Replace implements foreign.File.
func (f foreignFile) Replace(list []string, item string, by ...string) {
	f.tree.ReplaceItem(list, item, by...)
}

// Refuse implements foreign.File. The component is not checked further.
func (f foreignFile) Refuse(path []string, problem string) {
	if len(path) > 2 {
		f.problem(f.tree.KeyPos(path...), path, "%s", problem)
		f.tree.Remove(path...)
		return
	}
	id, err := pipeline.ParseID(path[1])
	if err != nil {
		f.problem(f.tree.KeyPos(path...), path[:1], "%v", err)
		return
	}
	for _, kind := range kinds {
		if kind.Section() == path[0] {
			f.broken[Key{kind, id}] = true
		}
	}
	f.problem(f.tree.KeyPos(path...), path, "%s; %s", problem, f.deletion(path[0], path[1]))
}

// deletion says which lines to delete to remove a component.
func (l *loader) deletion(section, id string) string {
	out := "delete " + l.tree.KeyPos(section, id).Lines()
	var lines []string
	for _, ref := range foreign.References(foreignFile{loader: l}, section, id) {
		pos := l.tree.ValuePos(ref...)
		pos.EndLine = 0
		if line := pos.Lines(); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return out
	}
	return out + " and the references to it: " + strings.Join(lines, ", ")
}
