package repo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/internal/golden"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/test/harness"
)

// TestFieldsOfUI compares the fields that the web UI knows with the table of places.
func TestFieldsOfUI(t *testing.T) {
	var b strings.Builder
	b.WriteString("// Code generated from pipeline/tracestore/fields.go by go test ./test/repo -update; DO NOT EDIT.\n\n" +
		"/** A field that is not an attribute. */\n" +
		"export interface FieldEntry {\n  name: string;\n  /** Other names. */\n  aliases: string[];\n" +
		"  type: 'text' | 'word' | 'duration' | 'number' | 'boolean';\n" +
		"  /** All values of a field that has few. */\n  words: string[];\n}\n\n" +
		"/** All fields that are not attributes. */\nexport const fields: FieldEntry[] = [\n")
	list := func(texts []string) string {
		quoted := make([]string, len(texts))
		for i, s := range texts {
			quoted[i] = "'" + s + "'"
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	entry := func(name string, aliases []string, typ tracestore.FieldType, words []string) {
		fmt.Fprintf(&b, "  { name: '%s', aliases: %s, type: '%s', words: %s },\n", name, list(aliases), typ, list(words))
	}
	var scopes []string
	for _, p := range tracestore.Places() {
		if p.Place.HasKey() {
			scopes = append(scopes, p.Name)
		} else {
			entry(p.Name, p.Names()[1:], p.Type, p.Words)
		}
	}
	for _, s := range tracestore.Shorthands() {
		entry(s.Name, nil, tracestore.BooleanField, nil)
	}
	fmt.Fprintf(&b, "];\n\n/** Scopes of attributes, with the dot after them. */\nexport const scopes = %s as const;\n", list(scopes))
	golden.Check(t, filepath.Join(harness.Root(t), "ui", "src", "query", "field-table.ts"), b.String())
}

// TestFieldsInDocuments compares the table in the reference of the search language with the table
// of places.
func TestFieldsInDocuments(t *testing.T) {
	file := filepath.Join(harness.Root(t), "docs", "search-language.md")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const header = "| field | also written | compared with |\n|---|---|---|\n"
	before, rest, ok := strings.Cut(string(content), header)
	_, after, ends := strings.Cut(rest, "\n\n")
	if !ok || !ends {
		t.Fatalf("%s has no table of fields", file)
	}
	golden.Check(t, file, before+header+strings.Join(fieldRows(), "\n")+"\n\n"+after)
}

// fieldRows returns the rows of the table in the reference.
func fieldRows() (rows []string) {
	code := func(texts []string) string {
		if len(texts) == 0 {
			return ""
		}
		return "`" + strings.Join(texts, "`, `") + "`"
	}
	row := func(name, aliases, doc string) {
		rows = append(rows, strings.Replace("| `"+name+"` | "+aliases+" | "+doc+" |", "|  |", "| |", 1))
	}
	var attributes []tracestore.PlaceInfo
	for _, p := range tracestore.Places() {
		doc := p.Doc
		if len(p.Words) > 0 {
			doc = code(p.Words)
		}
		if p.Place.HasKey() {
			attributes = append(attributes, p)
		} else {
			row(p.Name, code(p.Names()[1:]), doc)
		}
	}
	for _, s := range tracestore.Shorthands() {
		row(s.Name, "", s.Doc)
	}
	for _, p := range append(attributes[1:], attributes[0]) { // any place comes last
		aliases := ""
		if p.Place == tracestore.AnyAttribute {
			aliases = "`KEY` if it contains a dot: `http.route`"
		}
		row(p.Name+"KEY", aliases, p.Doc)
	}
	return rows
}
