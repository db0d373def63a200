package compatflags

import "strings"

// list is a [pipeline.Flag.Value] for lists, separated by commas.
func list(text string) (any, error) {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items, nil
}

// hostPort is a [pipeline.Flag.Value] for addresses. A bare number is a port on all addresses of
// the host.
func hostPort(text string) (any, error) {
	if text != "" && strings.Trim(text, "0123456789") == "" {
		return ":" + text, nil
	}
	return text, nil
}

// lower and upper are [pipeline.Flag.Value] functions for words in any case.
func lower(text string) (any, error) { return strings.ToLower(text), nil }
func upper(text string) (any, error) { return strings.ToUpper(text), nil }
