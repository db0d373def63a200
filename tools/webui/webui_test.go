package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSameBytes builds the web UI in two folders at different times, and expects the same bytes.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	copied := t.TempDir()
	for _, name := range []string{"index.html", "public", "src", "texts", "vendor", "tsconfig.json"} {
		copyFiles(t, filepath.Join("../../ui", name), filepath.Join(copied, name))
	}
	first, second := t.TempDir(), t.TempDir()
	for out, ui := range map[string]string{first: "../../ui", second: copied} {
		if err := run(ui, out); err != nil {
			t.Fatal(err)
		}
	}
	want, got := files(t, first), files(t, second)
	if !slices.Equal(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))) || len(want) < 20 {
		t.Errorf("files: %v, in another folder %v", slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
	}
	for name, content := range want {
		if content != got[name] {
			t.Errorf("%s differs in another folder", name)
		}
	}
}

// TestFiles checks that the files of the build are complete.
func TestFiles(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	old := filepath.Join(out, "assets", "old-12345678.js.gz")
	write(t, old, "old")
	if err := run("../../ui", out); err != nil {
		t.Fatal(err)
	}
	all := files(t, out)
	if all["assets/old-12345678.js.gz"] != "" {
		t.Error("a file of the build before is left")
	}
	names := regexp.MustCompile(`[\w-]+-(?:[0-9a-f]{8}\.(?:js|css)|[0-9A-Z]{8}\.(?:woff2|json))`)
	used := map[string]bool{}
	for name, content := range all {
		for _, n := range names.FindAllString(unzip(t, content), -1) {
			used["assets/"+n+".gz"] = true
			if all["assets/"+n+".gz"] == "" {
				t.Errorf("%s: no file %s", name, n)
			}
		}
	}
	for name := range all {
		if strings.HasPrefix(name, "assets/") && !used[name] {
			t.Errorf("nothing loads %s", name)
		}
	}
	// A name that a style sheet does not have, or that is calculated, keeps the table of all names.
	table := regexp.MustCompile(`\((\w)=>\(\w(?:\.\w+|\["[^"]+"\])="\w+",.{0,60}`)
	for name, content := range all {
		if !strings.HasSuffix(name, ".js.gz") {
			continue
		}
		if found := table.FindString(unzip(t, content)); found != "" {
			t.Errorf("%s has a table of classes, %s: use names of the style sheet only as css.name", name, found)
		}
	}
	page := unzip(t, all["index.html.gz"])
	for _, want := range []string{`<base href="/">`, `<script type="application/json" id="boot">{}</script>`, `<link rel="modulepreload"`, `<link rel="preload" as="font" type="font/woff2" crossorigin href="./assets/inter-`} {
		if !strings.Contains(page, want) {
			t.Errorf("index.html: no %s: %s", want, page)
		}
	}
	if inline := regexp.MustCompile(`<style|<script>|style="| on[a-z]+="|src/main`).FindString(page); inline != "" {
		t.Errorf("index.html has %s", inline)
	}
	texts := unzip(t, all["THIRD_PARTY_LICENSES.txt.gz"])
	heads := regexp.MustCompile(`(?m)^(\S+) [0-9.]+ \((?:MIT|OFL-1\.1)\)$`).FindAllStringSubmatch(texts, -1)
	var packages []string
	for _, h := range heads {
		packages = append(packages, h[1])
	}
	if want := []string{"@preact/signals", "@preact/signals-core", "inter-ui", "preact"}; !slices.Equal(packages, want) {
		t.Errorf("licenses of %v, want %v", packages, want)
	}
	if n := strings.Count(strings.ToLower(texts), "permission is hereby granted"); n != len(packages) {
		t.Errorf("%d licenses for %d packages", n, len(packages))
	}
}

// TestSmallUI builds a UI with two pages, one with a style sheet, and a worker.
func TestSmallUI(t *testing.T) {
	t.Parallel()
	s, err := build(smallUI(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"assets/main-????????.js":   `$load(import("./plain-????????.js")`,
		"assets/styled-????????.js": `"a"`,
		"assets/plain-????????.js":  "import{$b}from",
		"assets/work-worker-*.js":   "postMessage",
		"assets/xx-????????.json":   `{"a":"b"}`,
		"icon.svg":                  "<svg/>",
	} {
		content := match(t, s.files, name)
		if name == "assets/main-????????.js" {
			for _, p := range []string{
				`[^(]import\("\./plain-[0-9a-f]{8}\.js"\)`, // without style sheets
				`\(import\("\./styled-[0-9a-f]{8}\.js"\),"\./styled-[0-9a-f]{8}\.css"\)`,
				`new Worker\(new URL\("\./work-worker-[0-9a-f]{8}\.js",import\.meta\.url\)`,
				`"\./xx-[0-9A-Z]{8}\.json"`,
			} {
				if !regexp.MustCompile(p).MatchString(content) {
					t.Errorf("%s: no %s: %s", name, p, content)
				}
			}
			continue
		}
		if !strings.Contains(content, want) {
			t.Errorf("%s: no %s: %s", name, want, content)
		}
	}
	if style := match(t, s.files, "assets/styled-????????.css"); !strings.Contains(style, "color:red") || !strings.Contains(style, ".a{") {
		t.Errorf("the class does not have its short name: %s", style)
	}
	if pages := slices.Sorted(maps.Keys(s.pages)); !slices.Equal(pages, []string{"plain", "styled"}) {
		t.Errorf("pages: %v", pages)
	}
	// The HTML of a page loads what only this page needs.
	const everyPage = `<script type="module" crossorigin src="./assets/main-"></script>`
	for name, want := range map[string][]string{
		"index.html":       {everyPage},
		"pages/plain.html": {everyPage, `<link rel="modulepreload" crossorigin href="./assets/plain-">`},
		"pages/styled.html": {everyPage, `<link rel="modulepreload" crossorigin href="./assets/styled-">`,
			`<link rel="stylesheet" crossorigin href="./assets/styled-">`},
	} {
		tags := regexp.MustCompile(`<(?:link|script) .*`).FindAllString(s.files[name], -1)
		for i, tag := range tags {
			tags[i] = regexp.MustCompile(`[0-9a-f]{8}\.(js|css)`).ReplaceAllString(tag, "")
		}
		if !slices.Equal(tags, want) {
			t.Errorf("%s: %q, want %q", name, tags, want)
		}
	}
}

// TestLaterSheets builds a page that imports two sources with style sheets later. These are one
// file.
func TestLaterSheets(t *testing.T) {
	t.Parallel()
	s, err := build(smallUI(t, map[string]string{
		"src/pages/styled.ts": "import css from './styled.module.css';\nexport const a = [css.title, import('../one'), import('../two')];\n",
		"src/one.ts":          "import css from './one.module.css';\nexport const a = css.title;\n",
		"src/two.ts":          "import css from './two.module.css';\nexport const a = css.title;\n",
		"src/one.module.css":  ".title { color: green }\n",
		"src/two.module.css":  ".title { color: blue }\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	if style := match(t, s.files, "assets/styled-later-????????.css"); !strings.Contains(style, "green") || !strings.Contains(style, "#00f") {
		t.Errorf("style sheet: %s", style)
	}
	script := match(t, s.files, "assets/styled-????????.js")
	for _, name := range []string{"one", "two"} {
		if want := regexp.MustCompile(`import\("\./` + name + `-[0-9a-f]{8}\.js"\),"\./styled-later-[0-9a-f]{8}\.css"`); !want.MatchString(script) {
			t.Errorf("no %s: %s", want, script)
		}
	}
	for _, file := range s.pages["styled"] {
		if strings.Contains(file, "later") {
			t.Errorf("the page needs %s at its start", file)
		}
	}
}

// TestErrors checks what the tool says about wrong sources.
func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, text, want string }{
		{"src/pages/plain.ts", "export const a = 1;\nexport const b = ;\n", "src/pages/plain.ts:2:17"},
		{"src/pages/plain.ts", "import { x } from './none';\nx();\n", `src/pages/plain.ts:1:18`},
		{"src/pages/plain.ts", "import { x } from '../part';\nx();\n", `No matching export in "src/part.ts" for import "x"`},
		{"src/pages/plain.ts", "import 'other';\n", "no package other in ui/vendor"},
		{"src/pages/styled.module.css", ".title { color: red\n", "src/pages/styled.module.css:2:0"},
		{"src/pages/styled.module.css", "@keyframes a { }\n@keyframes a { }\n", "src/pages/styled.module.css has keyframes with the same name a"},
		{"src/pages/styled.ts", "import css from './none.module.css';\ncss.title;\n", "no style sheet src/pages/none.module.css"},
		{"src/part.ts", "export const y = new Worker(new URL('./no.ts', import.meta.url));\n", "no.ts: not the source of a worker"},
		{"src/part.ts", "export const y = () => import('./x/plain');\n", "another part of the web UI has the same name"},
		{"index.html", "<html></html>\n", "index.html: no line"},
	} {
		_, err := build(smallUI(t, map[string]string{c.file: c.text}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q: error %v, want %s", c.file, c.text, err, c.want)
		}
	}
}

// TestBudget checks the sizes: of the files that a page loads at its start, and of all files.
func TestBudget(t *testing.T) {
	t.Parallel()
	f := func(start, total int, want string) {
		t.Helper()
		sizes := map[string][]byte{"a.js.gz": make([]byte, start), "b.css.gz": make([]byte, total-start), "c.svg.gz": make([]byte, total)}
		err := check(sizes, map[string][]string{"page": {"a.js", "a.css"}})
		if (err == nil) != (want == "") || err != nil && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("start %d, total %d: %v", start, total, err)
		}
	}
	f(maxStart, maxTotal, "")
	f(maxStart+1, maxTotal, "budget: page")
	f(maxStart, maxTotal+1, "budget: total")
	for name, want := range map[string]string{"assets/a.woff2.gz": "budget: fonts", "assets/xx-1234.json.gz": "budget: texts xx"} {
		err := check(map[string][]byte{name: make([]byte, max(maxFonts, maxTexts)+1)}, nil)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("large %s: %v", name, err)
		}
	}
}

// smallUI writes a small UI, with some files replaced, and returns its folder.
func smallUI(t *testing.T, replaced map[string]string) string {
	t.Helper()
	files := map[string]string{
		"index.html": "<html>\n  <head>\n  </head>\n  <body>\n" + scriptTag + "  </body>\n</html>\n",
		"src/main.tsx": "import { y } from './part';\nimport xx from '../texts/xx.json?url';\n" +
			"console.log(y);\nimport('./pages/plain');\nimport('./pages/styled');\nimport('./dialogs');\n" +
			"new Worker(new URL('./work-worker.ts', import.meta.url), { type: 'module' });\nfetch(new URL(xx, import.meta.url));\n",
		"texts/xx.json":               `{"a":"b"}`,
		"src/part.ts":                 "export const y = [1];\n",
		"src/pages/plain.ts":          "import { y } from '../part';\nexport const a = [y, $a];\n", // $a is global
		"src/dialogs.ts":              "export const d = 1;\n",
		"src/x/plain.ts":              "export const b = 2;\n",
		"src/pages/styled.ts":         "import css from './styled.module.css';\nexport const a = css.title;\n",
		"src/pages/styled.module.css": ".title { color: red }\n",
		"src/work-worker.ts":          "postMessage(1);\n",
		"public/icon.svg":             "<svg/>",
	}
	maps.Copy(files, replaced)
	folder := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(folder, name), text)
	}
	return folder
}

// match returns the content of the only file with a name.
func match(t *testing.T, files map[string]string, pattern string) string {
	t.Helper()
	var found []string
	for name := range files {
		if ok, _ := filepath.Match(pattern, name); ok {
			found = append(found, name)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s: files %v of %v", pattern, found, slices.Sorted(maps.Keys(files)))
	}
	return files[found[0]]
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// copyFiles copies files, which get other times.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(name, from))
		write(t, target, string(content))
		return os.Chtimes(target, time.Time{}, time.Unix(1e9, 0))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// files returns the content of all files below a folder.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		all[strings.TrimPrefix(name, folder+"/")] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func unzip(t *testing.T, content string) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader([]byte(content)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
