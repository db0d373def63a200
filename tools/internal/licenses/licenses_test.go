package licenses_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/tracing-backend/tracing/tools/internal/licenses"
)

// TestModules collects the licenses of the program for two targets. It fails if a license is not
// known or not allowed.
func TestModules(t *testing.T) {
	items, err := licenses.Modules(t.Context(), "../../..", []licenses.Target{{OS: "linux", Arch: "amd64"}, {OS: "windows", Arch: "arm64"}})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]licenses.Item{}
	for _, i := range items {
		byName[i.Name] = i
	}
	for name, want := range map[string]string{
		"Go":                              "BSD-3-Clause",
		"google.golang.org/grpc":          "Apache-2.0",
		"gopkg.in/yaml.v3":                "Apache-2.0 MIT",
		"github.com/klauspost/compress":   "Apache-2.0 BSD-3-Clause MIT", // also of folders within the module
		"github.com/hashicorp/golang-lru": "MPL-2.0",
	} {
		if got := strings.Join(byName[name].IDs, " "); got != want {
			t.Errorf("%s: licenses %q, want %q", name, got, want)
		}
	}
	isNotice := func(f licenses.File) bool { return f.Name == "NOTICE.txt" }
	if !slices.ContainsFunc(byName["google.golang.org/grpc"].Files, isNotice) {
		t.Error("the notice of grpc is missing")
	}
	if _, ok := byName["github.com/tracing-backend/tracing"]; ok {
		t.Error("the program itself is among the modules of others")
	}
}

// TestWrite checks that the same text is written once, with all its owners.
func TestWrite(t *testing.T) {
	var b bytes.Buffer
	err := licenses.Write(&b, []licenses.Item{
		{Name: "a", Version: "v1", Files: []licenses.File{{Name: "LICENSE", Text: "Same text.\r\n"}, {Name: "NOTICE", Text: "Other text."}}},
		{Name: "b", Version: "v2", Files: []licenses.File{{Name: "COPYING", Text: "Same text.\n\n"}}},
	})
	rule := "\n" + strings.Repeat("=", 80) + "\n"
	want := rule + "a v1: LICENSE\nb v2: COPYING\n\nSame text.\n" + rule + "a v1: NOTICE\n\nOther text.\n"
	if err != nil || !strings.HasSuffix(b.String(), want) {
		t.Errorf("%v: %s", err, b.String())
	}
}

// TestUI reads the file that the build of the web UI writes.
func TestUI(t *testing.T) {
	rule := "\n" + strings.Repeat("-", 80) + "\n\n"
	items, err := licenses.UI("preact 11.2.0 (MIT)\n\nText.\n" + rule + "@preact/signals 2.11.4 (MIT)\n\nText.\n")
	if err != nil || len(items) != 2 || items[0].Name != "@preact/signals" || items[1].Version != "11.2.0" {
		t.Errorf("%+v, %v", items, err)
	}
	for _, text := range []string{"", "preact 11.2.0\n\nText.", "preact 11.2.0 (MIT)\n", "other 1.0.0 (GPL-3.0-only)\n\nText."} {
		if _, err := licenses.UI(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
