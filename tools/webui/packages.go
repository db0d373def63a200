package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// modules are the files below ui/vendor that sources import, by the names in the imports.
var modules = map[string]string{
	"preact":               "preact/dist/preact.mjs",
	"preact/hooks":         "preact/hooks/dist/hooks.mjs",
	"preact/jsx-runtime":   "preact/jsx-runtime/dist/jsxRuntime.mjs",
	"@preact/signals":      "@preact/signals/dist/signals.module.js",
	"@preact/signals-core": "@preact/signals-core/dist/signals-core.module.js",
}

// packages lets esbuild find the packages in ui/vendor, also if others are installed.
func packages(ui string) api.Plugin {
	return api.Plugin{Name: "packages", Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: `^[^./]`}, func(a api.OnResolveArgs) (r api.OnResolveResult, err error) {
			if a.Kind == api.ResolveEntryPoint {
				return r, nil
			}
			if modules[a.Path] == "" {
				return r, fmt.Errorf("no package %s in ui/vendor; add it there and in tools/webui/packages.go", a.Path)
			}
			r.Path = filepath.Join(ui, "vendor", modules[a.Path])
			return r, nil
		})
	}}
}

// addresses lets esbuild find a file whose address a source imports, as Vite does: ./file?url.
var addresses = api.Plugin{Name: "addresses", Setup: func(b api.PluginBuild) {
	b.OnResolve(api.OnResolveOptions{Filter: `\?url$`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
		return api.OnResolveResult{Path: filepath.Join(a.ResolveDir, strings.TrimSuffix(a.Path, "?url"))}, nil
	})
}}

// licenses returns the licenses of the packages with sources in the build.
func licenses(ui string, sources []string) (string, error) {
	texts := map[string]string{}
	for _, source := range sources {
		rest, ok := strings.CutPrefix(source, "vendor/")
		if !ok {
			continue
		}
		parts := strings.Split(rest, "/")
		folder := parts[0]
		if strings.HasPrefix(folder, "@") {
			folder += "/" + parts[1]
		}
		about, err := os.ReadFile(filepath.Join(ui, "vendor", folder, "package.json"))
		if err != nil {
			return "", err
		}
		var p struct{ Name, Version, License string }
		if err := json.Unmarshal(about, &p); err != nil {
			return "", fmt.Errorf("ui/vendor/%s/package.json: %w", folder, err)
		}
		text, err := os.ReadFile(filepath.Join(ui, "vendor", folder, "LICENSE"))
		if err != nil {
			return "", fmt.Errorf("package %s: no license: %w", folder, err)
		}
		texts[folder] = fmt.Sprintf("%s %s (%s)\n\n%s\n", p.Name, p.Version, p.License, strings.TrimSpace(string(text)))
	}
	var list []string
	for _, folder := range sorted(texts) {
		list = append(list, texts[folder])
	}
	return strings.Join(list, "\n"+strings.Repeat("-", 80)+"\n\n"), nil
}
