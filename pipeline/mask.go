package pipeline

import (
	"net/url"
	"regexp"
	"strings"
)

// masked replaces a secret.
const masked = "***"

// urlPattern matches URLs in a text, including invalid ones.
var urlPattern = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'` + "`" + `<>]*`)

// MaskURLs masks the parts of URLs in text that may contain secrets: user names and passwords,
// query values, and the fragment. Use it for URLs in log lines, errors and states.
func MaskURLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return urlPattern.ReplaceAllStringFunc(text, maskURL)
}

func maskURL(text string) string {
	_, err := url.Parse(text)
	bare, fragment, hasFragment := strings.Cut(text, "#")
	base, query, hasQuery := strings.Cut(bare, "?")
	if at := strings.LastIndexByte(text, '@'); err != nil && at > len(base) { // a password with ? or #
		scheme, _, _ := strings.Cut(base, "://")
		return maskURL(scheme + "://" + masked + text[at:])
	}
	scheme, rest, _ := strings.Cut(base, "://")
	authority := strings.IndexByte(rest, '/')
	if err != nil || authority < 0 {
		authority = len(rest) // a password may contain a slash
	}
	if at := strings.LastIndexByte(rest[:authority], '@'); at >= 0 {
		rest = masked + rest[at:]
	}
	out := scheme + "://" + rest
	if hasQuery {
		out += "?" + maskQuery(query)
	}
	if hasFragment && fragment != "" {
		out += "#" + masked
	}
	return out
}

// maskQuery masks the values of a query, and parameters without a value.
func maskQuery(query string) string {
	params := strings.Split(query, "&")
	for i, p := range params {
		name, value, ok := strings.Cut(p, "=")
		switch {
		case ok && value != "":
			params[i] = name + "=" + masked
		case !ok && p != "":
			params[i] = masked
		}
	}
	return strings.Join(params, "&")
}
