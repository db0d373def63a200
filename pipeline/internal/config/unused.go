package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// warnUnused warns about components that are not used.
func (l *loader) warnUnused() {
	used := l.config.Used()
	replaced := map[string][]string{} // ids by the list of the preset that had them
	for _, c := range l.components {
		if used[c] {
			continue
		}
		if list := l.presetList(c.Key); list != "" {
			replaced[list] = append(replaced[list], c.Key.ID.String())
			continue
		}
		reason := "no pipeline lists it"
		if c.Key.Kind == pipeline.KindExtension {
			reason = "service.extensions does not list it"
		}
		l.warn(c.pos, c.path(), "is configured but not used: %s", reason)
	}
	for _, list := range slices.Sorted(maps.Keys(replaced)) {
		l.warnReplaced(strings.Split(list, yamltree.Delim), replaced[list])
	}
}

// presetList returns the joined path of a list in the preset that has the component, or "".
func (l *loader) presetList(key Key) string {
	if l.preset == nil {
		return ""
	}
	lists := [][]string{{"service", "extensions"}}
	if key.Kind != pipeline.KindExtension {
		lists = nil
		for _, p := range l.preset.Keys("service", "pipelines") {
			lists = append(lists, []string{"service", "pipelines", p, key.Kind.Section()})
		}
	}
	for _, path := range lists {
		if slices.Contains(listItems(l.preset, path), key.ID.String()) {
			return yamltree.Join(path...)
		}
	}
	return ""
}

// warnReplaced warns that a list no longer has components that it has in the preset.
func (l *loader) warnReplaced(path, ids []string) {
	lost := strings.Join(ids, ", ")
	all := strings.Join(append(listItems(l.tree, path), ids...), ", ")
	removals := make([]string, len(ids))
	for i, id := range ids {
		removals[i] = id + ": null"
	}
	l.warn(l.valuePos(path), path, "replaces the list of the preset and switches off %s, because lists are not merged; "+
		"to keep all, write [%s]; to switch them off on purpose, write `%s` below %s",
		lost, all, strings.Join(removals, "`, `"), path[len(path)-1])
}

// listItems returns the items of a list.
func listItems(tree *yamltree.Tree, path []string) []string {
	items, _ := tree.Get(path...).([]any)
	var out []string
	for _, item := range items {
		if s, ok := item.(yamltree.Scalar); ok {
			out = append(out, s.Text)
		}
	}
	return out
}
