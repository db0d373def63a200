// Package linktemplate checks the templates of links from traces, spans, attributes and searches to
// other systems. The web UI fills them in.
package linktemplate

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// Template is a link template: configuration, and part of the response of /api/ui/v1/config.
type Template struct {
	Name     string   `yaml:"name" json:"name" doc:"Text of the link."`
	URL      string   `yaml:"url" json:"url" doc:"Address with placeholders, such as https://logs.example.com/{traceId}; docs/link-templates.md lists them."`
	On       string   `yaml:"on" json:"on" doc:"Where the link is shown: span (the default), trace (in its header, with values of its root span), attribute (beside the attribute in key) or search (among saved searches)."`
	Key      string   `yaml:"key" json:"key" doc:"Attribute of the span or its resource for on: attribute, for example host.name."`
	Requires []string `yaml:"requires" json:"requires" doc:"Further attributes without which the link is not shown: attribute.KEY or resource.KEY."`
}

// Places of links.
const (
	OnSpan      = "span"
	OnTrace     = "trace"
	OnAttribute = "attribute"
	OnSearch    = "search"
)

var _ pipeline.Validator = (*Template)(nil)

// Normalized returns the template with defaults, as clients get it.
func (t Template) Normalized() Template {
	if t.On == "" {
		t.On = OnSpan
	}
	t.Requires = append([]string{}, t.Requires...)
	return t
}

// Validate checks the template.
func (t *Template) Validate() error {
	var errs []error
	if strings.TrimSpace(t.Name) == "" {
		errs = append(errs, pipeline.BadKey("name", "must be set to the text of the link"))
	}
	if err := checkURL(t.URL, t.On); err != nil {
		errs = append(errs, pipeline.BadKey("url", "%v", err))
	}
	switch t.On {
	case "", OnSpan, OnTrace, OnSearch:
		if t.Key != "" {
			errs = append(errs, pipeline.BadKey("key", "requires on: attribute"))
		}
	case OnAttribute:
		if t.Key == "" {
			errs = append(errs, pipeline.BadKey("key", "must be set to an attribute, because of on: attribute"))
		}
	default:
		errs = append(errs, pipeline.BadKey("on", "%q is not a place for links; use span, trace, attribute or search", t.On))
	}
	if t.On == OnSearch && len(t.Requires) > 0 {
		errs = append(errs, pipeline.BadKey("requires", "must be empty, because a search has no attributes"))
	}
	for i, name := range t.Requires {
		if !isAttribute(name) {
			errs = append(errs, pipeline.BadKey(fmt.Sprintf("requires::%d", i), "%q is not an attribute; write attribute.KEY or resource.KEY", name))
		}
	}
	return errors.Join(errs...)
}

// Schemes of links. A link can only open a page or a message.
var schemes = []string{"http", "https", "mailto"}

// checkURL checks an address with placeholders for a place.
func checkURL(text, on string) error {
	filled, first, err := fill(text, on)
	if err != nil {
		return err
	}
	u, err := url.Parse(filled)
	if err != nil {
		return fmt.Errorf("%q is not an address: %w", text, errors.Unwrap(err))
	}
	if !slices.Contains(schemes, u.Scheme) {
		return fmt.Errorf("scheme %q is not allowed; use http, https or mailto", u.Scheme)
	}
	if u.Scheme == "mailto" {
		return nil
	}
	if u.Host == "" {
		return fmt.Errorf("%q has no host; write, for example, https://logs.example.com/search?trace={traceId}", text)
	}
	// A value must not choose the server: attributes are written by the traced programs.
	if host := len(u.Scheme) + len("://") + strings.IndexAny(filled[len(u.Scheme)+len("://"):]+"/", "/?#"); first >= 0 && first < host {
		return errors.New("placeholder before the path; only path, query and fragment may contain placeholders")
	}
	return nil
}

// fill replaces the placeholders of a text by 0. first is the position of the first one, or -1.
func fill(text, on string) (filled string, first int, err error) {
	var b strings.Builder
	first = -1
	for rest := text; ; {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			b.WriteString(rest)
			return b.String(), first, nil
		}
		end := strings.IndexByte(rest, '}')
		if rest[open] == '}' || end < 0 {
			return "", 0, fmt.Errorf("unpaired brace %q; write %%7B and %%7D for braces in addresses", rest[open])
		}
		name := rest[open+1 : end]
		if err := checkPlaceholder(name, on); err != nil {
			return "", 0, err
		}
		b.WriteString(rest[:open])
		if first < 0 {
			first = b.Len()
		}
		b.WriteByte('0')
		rest = rest[end+1:]
	}
}

// Names of placeholders, with units for times.
var (
	spanNames   = []string{"traceId", "spanId", "service", "operation"}
	searchNames = []string{"query", "query:json"}
	times       = map[string][]string{
		"start": {"s", "ms", "us", "ns", "iso"}, "end": {"s", "ms", "us", "ns", "iso"}, "duration": {"s", "ms", "us", "ns"},
	}
)

func checkPlaceholder(name, on string) error {
	isSearch := on == OnSearch
	if isSearch && slices.Contains(searchNames, name) || !isSearch && (slices.Contains(spanNames, name) || isAttribute(name)) {
		return nil
	}
	base, unit, hasUnit := strings.Cut(name, ":")
	units, isTime := times[base]
	switch {
	case !isTime && isSearch:
		return fmt.Errorf("unknown placeholder {%s} of a search; use {query}, {query:json}, {start}, {end} or {duration}", name)
	case !isTime:
		return fmt.Errorf("unknown placeholder {%s}; use {traceId}, {spanId}, {start}, {end}, {duration}, {service}, {operation}, "+
			"{attribute.KEY} or {resource.KEY}", name)
	case hasUnit && !slices.Contains(units, unit):
		return fmt.Errorf("unknown unit in placeholder {%s}; use %s", name, strings.Join(units, ", "))
	}
	return nil
}

// isAttribute reports whether a text is attribute.KEY or resource.KEY.
func isAttribute(name string) bool {
	for _, prefix := range []string{"attribute.", "resource."} {
		if key, ok := strings.CutPrefix(name, prefix); ok {
			return key != ""
		}
	}
	return false
}
