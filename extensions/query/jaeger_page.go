package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"

	"github.com/tracing-backend/tracing/pipeline"
)

// jaegerCapabilities tell the UI which features are available.
type jaegerCapabilities struct {
	Archive     bool `json:"archiveStorage"`
	Metrics     bool `json:"metricsStorage"`
	AllServices bool `json:"searchWithoutServiceName"` // it offers a search in all services
	Assistant   bool `json:"aiAssistant"`
}

// uiSettings is the content of the file that configures the UI. Both fields are nil if there is no
// file.
type uiSettings struct {
	object []byte // a JSON object
	script []byte // JavaScript that defines the function UIConfig, escaped for a page
}

func isUISettings(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".js" || ext == ".json"
}

// readUISettings reads the file that configures the UI.
func readUISettings(name string) (s uiSettings, err error) {
	b, err := pipeline.ReadFile(context.Background(), name, maxPageBytes)
	if err != nil {
		return s, fmt.Errorf("cannot read UI config file %s: %w", name, err)
	}
	if filepath.Ext(name) == ".js" {
		if !regexp.MustCompile(`function\s+UIConfig\s*\(\s*\)\s*\{`).Match(b) {
			return s, fmt.Errorf("UI config file must define function UIConfig(): %s", name)
		}
		return uiSettings{script: inPage(b)}, nil
	}
	var object map[string]json.RawMessage
	if err = json.Unmarshal(b, &object); err == nil && object == nil {
		err = errors.New("null is not an object")
	}
	if err != nil {
		return s, fmt.Errorf("cannot parse UI config file %s: %w", name, err)
	}
	if s.object, err = json.Marshal(object); err != nil {
		return s, fmt.Errorf("cannot parse UI config file %s: %w", name, err)
	}
	return s, nil
}

// inPage escapes a script for a page, because the text `</script` would end it. Within a JavaScript
// string, the added backslash has no effect.
func inPage(script []byte) []byte {
	return regexp.MustCompile(`(?i)</(script)`).ReplaceAll(script, []byte(`<\/$1`))
}

// render replaces the placeholders of the index page. Their names are those in builds of the Jaeger
// UI.
func (u *jaegerUI) render(page []byte, s uiSettings, c jaegerCapabilities) []byte {
	replace := func(pattern string, text []byte) {
		page = regexp.MustCompile(pattern).ReplaceAllLiteral(page, text)
	}
	if s.script != nil {
		replace(`(?im)^[ \t]*//[ \t]*JAEGER_CONFIG_JS.*\n.*`, s.script)
	}
	if s.object != nil {
		replace(assignment("JAEGER_CONFIG", "DEFAULT_CONFIG"), assigned("JAEGER_CONFIG", s.object))
	}
	able := asJSON(c)
	replace(assignment("JAEGER_STORAGE_CAPABILITIES", "DEFAULT_STORAGE_CAPABILITIES"), assigned("JAEGER_STORAGE_CAPABILITIES", able))
	replace(assignment("JAEGER_BACKEND_CAPABILITIES", "DEFAULT_BACKEND_CAPABILITIES"), assigned("JAEGER_BACKEND_CAPABILITIES", able))
	replace(assignment("JAEGER_VERSION", "DEFAULT_VERSION"), assigned("JAEGER_VERSION", asJSON(u.version)))
	return bytes.ReplaceAll(page, []byte(`<base href="/"`), []byte(`<base href="`+u.base+`/"`))
}

// asJSON encodes a struct of strings and booleans as JSON that is safe within a page.
func asJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}

func assignment(name, standIn string) string { return name + ` *= *` + standIn + `;` }

func assigned(name string, value []byte) []byte { return fmt.Appendf(nil, "%s = %s;", name, value) }
