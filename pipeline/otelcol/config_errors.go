package otelcol

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"go.opentelemetry.io/collector/component"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

type unconvertible = mapstructure.UnconvertibleTypeError

// keyErrors returns the errors from decoding or checking a configuration, each with the path of its
// key. tree contains the values that the user has set.
func keyErrors(config component.Config, tree map[string]any, err error) error {
	var all []error
	eachDecodeError(err, "", func(path string, cause error) {
		keys, unknown := strings.CutPrefix(cause.Error(), "has invalid keys: ")
		if !unknown {
			at := cmp.Or(givenPath(config, path), quotedPath(tree, cause.Error()))
			all = append(all, pipeline.BadKey(at, "%s", valueMessage(typeAt(reflect.TypeOf(config), path), cause)))
			return
		}
		for !hasPath(tree, path) { // the name of a Go type, which stands for the block above
			path, _ = cutLast(path)
		}
		for k := range strings.SplitSeq(keys, ", ") {
			all = append(all, yamltree.UnknownKey(join(path, k), k, knownKeys(config, path)))
		}
	})
	slices.SortStableFunc(all, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(all...)
}

// eachDecodeError calls visit for each mistake in err, with as much of its path as err contains,
// joined by `::`.
func eachDecodeError(err error, path string, visit func(path string, cause error)) {
	if err == nil {
		return
	}
	if d, ok := err.(*mapstructure.DecodeError); ok {
		eachDecodeError(d.Unwrap(), join(path, pathOf(d.Name())), visit)
		return
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			eachDecodeError(e, path, visit)
		}
		return
	}
	inner := errors.Unwrap(err)
	if inner == nil {
		visit(path, err)
		return
	}
	before, isPath := validatorPath(err, inner)
	var many interface{ Unwrap() []error }
	var decode *mapstructure.DecodeError
	switch {
	case isPath:
		eachDecodeError(inner, join(path, before), visit)
	case errors.As(inner, &many) || errors.As(inner, &decode):
		eachDecodeError(inner, path, visit)
	default:
		visit(path, err)
	}
}

// validatorPath returns the path with which the Collector has prefixed the error of a Validate.
func validatorPath(err, inner error) (string, bool) {
	path, ok := strings.CutSuffix(err.Error(), ": "+inner.Error())
	return path, ok && path != "" && reflect.TypeOf(err).Name() == "pathError"
}

// pathOf returns the path of a name of the decoder: `actions[0].key` is `actions::0::key`.
func pathOf(name string) string {
	var parts []string
	for name != "" {
		end := strings.IndexAny(name, ".[")
		if name[0] == '[' {
			if end = strings.IndexByte(name, ']'); end > 0 {
				parts = append(parts, name[1:end])
				name = name[end+1:]
				continue
			}
		}
		switch {
		case end < 0:
			return strings.Join(append(parts, name), delim)
		case end > 0:
			parts = append(parts, name[:end])
			name = name[end:]
		}
		if name[0] == '.' || end == 0 {
			name = name[1:]
		}
	}
	return strings.Join(parts, delim)
}

func join(path, more string) string {
	if path == "" || more == "" {
		return path + more
	}
	return path + delim + more
}

// cutLast returns path without its last part, and the last part.
func cutLast(path string) (parent, last string) {
	i := strings.LastIndex(path, delim)
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+len(delim):]
}

// hasPath reports whether the user has set something at path.
func hasPath(tree any, path string) bool {
	if path == "" {
		return true
	}
	first, rest, _ := strings.Cut(path, delim)
	switch t := tree.(type) {
	case map[string]any:
		v, ok := t[first]
		return ok && hasPath(v, rest)
	case []any:
		i, err := strconv.Atoi(first)
		return err == nil && i >= 0 && i < len(t) && hasPath(t[i], rest)
	}
	return false
}

// valueMessage describes what is wrong with a value that should have the given type, in this
// program's words. The type is nil if it is unknown.
func valueMessage(want reflect.Type, err error) string {
	if wrong, ok := err.(*unconvertible); ok {
		return fmt.Sprintf("must be %s, not %s", withArticle(typeWord(wrong.Expected.Type())), givenWord(wrong.Value))
	}
	text := err.Error()
	switch {
	case want == nil:
	case strings.HasPrefix(text, "expected a map"), strings.HasPrefix(text, "source data must be an array or slice"):
		return "must be " + withArticle(typeWord(want))
	case want == reflect.TypeFor[time.Duration]() && strings.HasPrefix(text, "time: "):
		return "must be a duration, such as 30s: " + strings.TrimPrefix(text, "time: ")
	}
	if parse, ok := err.(*mapstructure.ParseError); ok {
		return fmt.Sprintf("must be %s: %v", withArticle(typeWord(parse.Expected.Type())), parse.Err)
	}
	return text
}

// givenWord describes a value. It does not show text, which may be a secret.
func givenWord(v any) string {
	switch v.(type) {
	case nil:
		return "empty"
	case string:
		return "a string"
	case map[string]any, map[any]any:
		return "a map"
	case []any:
		return "a list"
	}
	return fmt.Sprint(v)
}

// quotedPath returns the path of the value that a message quotes, or of the block that contains all
// quoted values, or "".
func quotedPath(tree map[string]any, message string) string {
	var found []string
	quotedPaths(tree, "", message, &found)
	if len(found) == 0 {
		return ""
	}
	if parent, last := cutLast(found[0]); len(found) == 1 && (last == "name" || last == "key") {
		return parent // the value only says which block is meant
	}
	common := strings.Split(found[0], delim)
	for _, path := range found[1:] {
		parts := strings.Split(path, delim)
		n := 0
		for n < min(len(common), len(parts)) && common[n] == parts[n] {
			n++
		}
		common = common[:n]
	}
	return strings.Join(common, delim)
}

func quotedPaths(tree any, path, message string, found *[]string) {
	switch t := tree.(type) {
	case map[string]any:
		for k, v := range t {
			quotedPaths(v, join(path, k), message, found)
		}
	case []any:
		for i, v := range t {
			quotedPaths(v, join(path, strconv.Itoa(i)), message, found)
		}
	case string:
		if t != "" && (strings.Contains(message, strconv.Quote(t)) || strings.Contains(message, "'"+t+"'")) {
			*found = append(*found, path)
		}
	}
}
