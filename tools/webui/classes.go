package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// classes gives the classes of CSS modules short names. Sources import them as a TypeScript enum,
// whose members esbuild replaces by their values. So scripts have no table of names, as they would
// with the loader local-css.
type classes struct {
	ui     string
	styles map[string]string // by source: the text with short names
	enums  map[string]string // by source: what sources import
}

const (
	moduleExt = ".module.css"
	enumSpace = "classes" // namespace of the enums
	// styleCall stays in the chunk of what imports a style sheet, so that its place is known. It is
	// removed when the chunks are linked.
	styleCall = "$style"
)

var (
	cssComment = regexp.MustCompile(`(?s)/\*.*?\*/`)
	className  = regexp.MustCompile(`\.[A-Za-z_][\w-]*`)
	keyframes  = regexp.MustCompile(`@keyframes\s+([\w-]+)`)
)

// readClasses reads the CSS modules of the style sheets.
func readClasses(ui string, sheets []string) (*classes, error) {
	c := &classes{ui, map[string]string{}, map[string]string{}}
	total, animations := 0, map[string]string{}
	for _, source := range sheets {
		content, err := os.ReadFile(filepath.Join(ui, source))
		if err != nil {
			return nil, err
		}
		text := string(content)
		for _, m := range keyframes.FindAllStringSubmatch(text, -1) {
			if other := animations[m[1]]; other != "" {
				return nil, fmt.Errorf("%s: %s has keyframes with the same name %s; rename them", source, other, m[1])
			}
			animations[m[1]] = source
		}
		if !strings.HasSuffix(source, moduleExt) {
			continue
		}
		text = cssComment.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
		short := map[string]string{}
		var members strings.Builder
		c.styles[source] = className.ReplaceAllStringFunc(text, func(name string) string {
			if short[name] == "" {
				short[name] = "." + shortName(total)
				total++
				fmt.Fprintf(&members, "%q=%q,", name[1:], short[name][1:])
			}
			return short[name]
		})
		c.enums[source] = fmt.Sprintf("enum css{%s}\nexport{css as default};\n%s(%q)", members.String(), styleCall, source)
	}
	return c, nil
}

// shortName returns the name with a number: a letter, then letters and digits.
func shortName(n int) string {
	const characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	const letters = len(characters) - 10
	name := characters[n%letters : n%letters+1]
	for n /= letters; n > 0; n /= len(characters) {
		n--
		name += characters[n%len(characters) : n%len(characters)+1]
	}
	return name
}

// setup lets esbuild read the enums and the style sheets.
func (c *classes) setup(b api.PluginBuild) {
	const filter = `\.module\.css$`
	b.OnResolve(api.OnResolveOptions{Filter: filter}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
		if a.Kind == api.ResolveEntryPoint {
			return api.OnResolveResult{}, nil
		}
		source, err := filepath.Rel(c.ui, filepath.Join(a.ResolveDir, a.Path))
		source = filepath.ToSlash(source)
		if err == nil && c.enums[source] == "" {
			err = fmt.Errorf("no style sheet %s", source)
		}
		return api.OnResolveResult{Path: source, Namespace: enumSpace}, err
	})
	b.OnLoad(api.OnLoadOptions{Filter: filter, Namespace: enumSpace}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
		text := c.enums[a.Path]
		return api.OnLoadResult{Contents: &text, Loader: api.LoaderTS}, nil
	})
	b.OnLoad(api.OnLoadOptions{Filter: filter}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
		source, err := filepath.Rel(c.ui, a.Path)
		text := c.styles[filepath.ToSlash(source)]
		return api.OnLoadResult{Contents: &text, Loader: api.LoaderCSS}, err
	})
}
