package yamltree

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Expander replaces references in scalars: ${NAME}, ${NAME:-default}, ${env:NAME},
// ${env:NAME:-default}, ${file:/path} and $$. A default may contain references. Expansion runs
// once, after parsing, so that values cannot add structure and a dollar sign in a value is not
// expanded.
type Expander struct {
	LookupEnv func(name string) (string, bool)
	ReadFile  func(path string) ([]byte, error)

	included []included // values of variables and files since the list was last cleared, without paths
}

// maxValue is the maximum size of a file that ${file:} reads, and of an expanded scalar, in bytes.
const maxValue = 1 << 20

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Expand returns s with all references replaced. A dollar sign that begins neither a reference nor
// $$ is kept. Unset variables without default, unreadable files and unclosed braces are errors.
func (e *Expander) Expand(s string) (string, error) {
	if !strings.Contains(s, "$") {
		return s, nil
	}
	var out strings.Builder
	for {
		if out.Len() > maxValue {
			return "", fmt.Errorf("expands to more than %d bytes", maxValue)
		}
		i := strings.IndexByte(s, '$')
		if i < 0 || i == len(s)-1 {
			out.WriteString(s)
			return out.String(), nil
		}
		out.WriteString(s[:i])
		switch s[i+1] {
		case '$':
			out.WriteByte('$')
			s = s[i+2:]
		case '{':
			end := closingBrace(s[i:])
			if end < 0 {
				return "", errors.New("has no closing brace after ${; write $$ for a dollar")
			}
			v, err := e.lookup(s[i+2 : i+end])
			if err != nil {
				return "", err
			}
			out.WriteString(v)
			s = s[i+end+1:]
		default:
			out.WriteByte('$')
			s = s[i+1:]
		}
	}
}

// closingBrace returns the index of the brace that closes the one at the beginning of s, or -1.
// References in between have braces of their own.
func closingBrace(s string) int {
	depth := 0
	for i := range len(s) {
		switch {
		case strings.HasPrefix(s[i:], "${"):
			if depth++; depth > maxDepth {
				return -1
			}
		case s[i] == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func (e *Expander) lookup(ref string) (string, error) {
	if path, ok := strings.CutPrefix(ref, "file:"); ok {
		b, err := e.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("reading ${file:%s}: %w", path, err)
		}
		if len(b) > maxValue {
			return "", fmt.Errorf("${file:%s} has more than %d bytes", path, maxValue)
		}
		return e.include(ref, strings.TrimRight(string(b), "\r\n")), nil
	}
	name, def, hasDefault := strings.Cut(strings.TrimPrefix(ref, "env:"), ":-")
	if !envName.MatchString(name) {
		return "", fmt.Errorf("${%s} is neither an environment variable nor ${file:/path}; write $$ for a dollar", ref)
	}
	if v, ok := e.LookupEnv(name); ok && (v != "" || !hasDefault) {
		return e.include(ref, v), nil
	}
	if hasDefault {
		return e.Expand(def) // may be another variable
	}
	return "", fmt.Errorf("environment variable %s is not set; write ${%s:-default} for a default", name, name)
}

func (e *Expander) include(ref, text string) string {
	e.included = append(e.included, included{text: text, written: "${" + ref + "}"})
	return text
}
