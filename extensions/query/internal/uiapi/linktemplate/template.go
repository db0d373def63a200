// Package linktemplate checks the templates of links from traces, spans, attributes, services and
// searches to other systems, and knows the templates for common systems. The web UI fills them in.
package linktemplate

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline"
)

// Template is a link template in the configuration.
type Template struct {
	Name     string            `yaml:"name" json:"name" doc:"Text of the link."`
	URL      string            `yaml:"url" json:"url" doc:"Address with placeholders, such as https://logs.example.com/{traceId}; docs/link-templates.md lists them."`
	On       string            `yaml:"on" json:"on" doc:"Where the link is shown: span (the default), trace (in its header, with values of its root span), attribute (beside the attribute in key), service (on its page) or search (among saved searches)."`
	Key      string            `yaml:"key" json:"key" doc:"Attribute of the span or its resource for on: attribute, for example host.name."`
	Requires []string          `yaml:"requires" json:"requires" doc:"Further attributes without which the link is not shown: attribute.KEY or resource.KEY."`
	Query    string            `yaml:"query" json:"query" doc:"Text with placeholders for the placeholder {query} of the address, such as trace_id={traceId:json}. Other text in braces stays as it is."`
	Margin   pipeline.Duration `yaml:"margin" json:"-" doc:"Time that is subtracted from {start} and added to {end}, for example because logs are written late."`
}

// ForUI is a template in the response of /api/ui/v1/config.
type ForUI struct {
	Template
	Margin int64 `json:"margin"` // nanoseconds
}

// Places of links.
const (
	OnSpan      = "span"
	OnTrace     = "trace"
	OnAttribute = "attribute"
	OnService   = "service"
	OnSearch    = "search"
)

var _ pipeline.Validator = (*Template)(nil)

// ForUI returns the template with defaults.
func (t Template) ForUI() ForUI {
	if t.On == "" {
		t.On = OnSpan
	}
	t.Requires = append([]string{}, t.Requires...)
	return ForUI{t, t.Margin.Std().Nanoseconds()}
}

// Validate checks the template.
func (t *Template) Validate() error {
	var errs []error
	if strings.TrimSpace(t.Name) == "" {
		errs = append(errs, pipeline.BadKey("name", "must be set to the text of the link"))
	}
	if err := t.checkURL(); err != nil {
		errs = append(errs, pipeline.BadKey("url", "%v", err))
	}
	if err := t.checkQuery(); err != nil {
		errs = append(errs, pipeline.BadKey("query", "%v", err))
	}
	switch t.On {
	case "", OnSpan, OnTrace, OnService, OnSearch:
		if t.Key != "" {
			errs = append(errs, pipeline.BadKey("key", "requires on: attribute"))
		}
	case OnAttribute:
		if t.Key == "" {
			errs = append(errs, pipeline.BadKey("key", "must be set to an attribute, because of on: attribute"))
		}
	default:
		errs = append(errs, pipeline.BadKey("on", "%q is not a place for links; use span, trace, attribute, service or search", t.On))
	}
	if !t.hasAttributes() && len(t.Requires) > 0 {
		errs = append(errs, pipeline.BadKey("requires", "must be empty, because a %s has no attributes", t.On))
	}
	for i, name := range t.Requires {
		if !isAttribute(name) {
			errs = append(errs, pipeline.BadKey(fmt.Sprintf("requires::%d", i), "%q is not an attribute; write attribute.KEY or resource.KEY", name))
		}
	}
	return errors.Join(errs...)
}

// hasAttributes reports whether the link is shown where spans have attributes.
func (t *Template) hasAttributes() bool { return t.On != OnService && t.On != OnSearch }

// Schemes of links. A link can only open a page or a message.
var schemes = []string{"http", "https", "mailto"}

// checkURL checks the address.
func (t *Template) checkURL() error {
	filled, first, err := t.fillURL()
	if err != nil {
		return err
	}
	u, err := url.Parse(filled)
	if err != nil {
		return fmt.Errorf("%q is not an address: %w", t.URL, errors.Unwrap(err))
	}
	if !slices.Contains(schemes, u.Scheme) {
		return fmt.Errorf("scheme %q is not allowed; use http, https or mailto", u.Scheme)
	}
	if u.Scheme == "mailto" {
		return nil
	}
	if u.Host == "" {
		return fmt.Errorf("%q has no host; write, for example, https://logs.example.com/search?trace={traceId}", t.URL)
	}
	// A value must not choose the server: attributes are written by the traced programs.
	if host := len(u.Scheme) + len("://") + strings.IndexAny(filled[len(u.Scheme)+len("://"):]+"/", "/?#"); first >= 0 && first < host {
		return errors.New("placeholder before the path; only path, query and fragment may contain placeholders")
	}
	return nil
}

// fillURL replaces the placeholders of the address by 0. first is the position of the first one, or
// -1.
func (t *Template) fillURL() (filled string, first int, err error) {
	var b strings.Builder
	first = -1
	for rest := t.URL; ; {
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
		if err := t.checkPlaceholder(name, t.On == OnSearch || t.Query != ""); err != nil {
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

// inQuery matches the placeholders of Template.Query. Other text in braces belongs to the language
// of the query. The web UI has the same expression.
var inQuery = regexp.MustCompile(`\{([A-Za-z]+(?:[.:][^{}]*)?)\}`)

// quoting matches the suffix of a placeholder that quotes or escapes its value. The web UI has the
// same list.
var quoting = regexp.MustCompile(`:(json|rison|jsurl)$`)

func (t *Template) checkQuery() error {
	if t.Query == "" {
		return nil
	}
	if t.On == OnSearch {
		return errors.New("must be empty, because a search is a query")
	}
	if !strings.Contains(t.URL, "{query}") && !strings.Contains(t.URL, "{query:") {
		return errors.New("is used only by the placeholder {query}, which url does not contain")
	}
	for _, match := range inQuery.FindAllStringSubmatch(t.Query, -1) {
		if err := t.checkPlaceholder(match[1], false); err != nil {
			return err
		}
	}
	return nil
}

// Names of placeholders, with units for times.
var (
	spanNames = []string{"traceId", "spanId", "service", "operation"}
	times     = map[string][]string{
		"start": {"s", "ms", "us", "ns", "iso"}, "end": {"s", "ms", "us", "ns", "iso"}, "duration": {"s", "ms", "us", "ns"},
	}
)

// checkPlaceholder checks the name of a placeholder. withQuery means that {query} has a value.
func (t *Template) checkPlaceholder(placeholder string, withQuery bool) error {
	name := quoting.ReplaceAllString(placeholder, "")
	switch {
	case quoting.MatchString(name): // two of them
	case name == "query" && withQuery, name == "service" && t.On == OnService,
		t.hasAttributes() && (slices.Contains(spanNames, name) || isAttribute(name)):
		return nil
	}
	base, unit, hasUnit := strings.Cut(name, ":")
	units, isTime := times[base]
	switch {
	case !isTime && t.On == OnSearch:
		return fmt.Errorf("unknown placeholder {%s} of a search; use {query}, {query:json}, {start}, {end} or {duration}", placeholder)
	case !isTime && t.On == OnService:
		return fmt.Errorf("unknown placeholder {%s} of a service; use {service}, {start}, {end} or {duration}", placeholder)
	case !isTime:
		return fmt.Errorf("unknown placeholder {%s}; use {traceId}, {spanId}, {start}, {end}, {duration}, {service}, {operation}, "+
			"{attribute.KEY} or {resource.KEY}", placeholder)
	case hasUnit && !slices.Contains(units, unit):
		return fmt.Errorf("unknown unit in placeholder {%s}; use %s", placeholder, strings.Join(units, ", "))
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
