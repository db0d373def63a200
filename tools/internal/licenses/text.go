package licenses

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// rule separates the parts of the text that Write writes.
var rule = strings.Repeat("=", 80)

// Write writes the licenses of all items. Licenses with the same text are written once.
func Write(w io.Writer, items []Item) error {
	b := bufio.NewWriter(w)
	fmt.Fprint(b, "The program contains code of others. Their names, versions and licenses follow.\n"+
		"`go mod download -json NAME@VERSION` gets the source code of a Go module.\n")
	owners := map[string][]string{} // by text
	var texts []string
	for _, i := range items {
		for _, f := range i.Files {
			text := strings.TrimSpace(strings.ReplaceAll(f.Text, "\r\n", "\n"))
			if _, ok := owners[text]; !ok {
				texts = append(texts, text)
			}
			owners[text] = append(owners[text], fmt.Sprintf("%s %s: %s", i.Name, i.Version, f.Name))
		}
	}
	for _, text := range texts {
		fmt.Fprintf(b, "\n%s\n%s\n\n%s\n", rule, strings.Join(owners[text], "\n"), text)
	}
	return b.Flush()
}

// uiRule separates the packages in the file that the build of the web UI writes.
var uiRule = "\n" + strings.Repeat("-", 80) + "\n\n"

// UI returns the packages in the web UI, given the content of the file with their licenses that its
// build writes, sorted by name. The first line of each is its name, version and license.
func UI(text string) ([]Item, error) {
	var items []Item
	for part := range strings.SplitSeq(text, uiRule) {
		head, body, _ := strings.Cut(part, "\n")
		f := strings.Fields(head)
		if len(f) != 3 || strings.TrimSpace(body) == "" {
			return nil, fmt.Errorf("licenses of the web UI: %q is not the name, version and license of a package", head)
		}
		i := Item{Name: f[0], Version: f[1], IDs: []string{strings.Trim(f[2], "()")}, Files: []File{{"LICENSE", body}}}
		if err := i.check(); err != nil {
			return nil, err
		}
		items = append(items, i)
	}
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.Name, b.Name) })
	return items, nil
}
