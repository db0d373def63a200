package otelcol

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/confmap"

	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// delim joins the parts of a path, in this program and in the Collector.
const delim = "::"

// Config is the configuration of an adapted component. The component's own code decodes and checks
// it.
type Config struct {
	factory component.Factory
	// check builds a component on a trial basis and returns what is wrong with its configuration.
	// It is nil if this is not possible.
	check func(component.Config) error
	docs  map[string]string // of the option [Keys]
	value component.Config  // of the component's own type
	given map[string]any
}

var _ yamltree.TreeConfig = (*Config)(nil)

// defaults returns a function that returns the default configuration of a component.
func defaults(f component.Factory, check func(component.Config) error, docs map[string]string) func() Config {
	return func() Config { return Config{factory: f, check: check, docs: docs, value: f.CreateDefaultConfig()} }
}

// UnmarshalTree implements [yamltree.TreeConfig].
func (c *Config) UnmarshalTree(tree map[string]any, texts map[string]string) error {
	value, given, err := c.decode(c.withUnits(tree, texts), texts)
	c.given = given
	if err != nil {
		return keyErrors(value, given, err)
	}
	c.value = value
	if err := confmap.Validate(value); err != nil {
		return keyErrors(value, given, err)
	}
	if c.check == nil {
		return nil
	}
	return keyErrors(value, given, c.check(value))
}

// withUnits returns a copy of tree in which durations are text, because the Collector's code would
// interpret a number as nanoseconds.
func (c *Config) withUnits(tree map[string]any, texts map[string]string) map[string]any {
	t := reflect.TypeOf(c.factory.CreateDefaultConfig())
	for path, text := range texts {
		if typeAt(t, path) == reflect.TypeFor[time.Duration]() {
			tree = withText(tree, strings.Split(path, delim), text).(map[string]any)
		}
	}
	return tree
}

// decode decodes tree into a configuration with the defaults. If the component needs text and the
// tree has a number or a bool, it uses the text that the user has written.
func (c *Config) decode(tree map[string]any, texts map[string]string) (component.Config, map[string]any, error) {
	for {
		value := c.factory.CreateDefaultConfig()
		err := confmap.NewFromStringMap(copyTree(tree).(map[string]any)).Unmarshal(value)
		path, text, ok := wantsText(err, texts)
		if !ok {
			return value, tree, err
		}
		tree = withText(tree, strings.Split(path, delim), text).(map[string]any)
		texts = maps.Clone(texts)
		delete(texts, path)
	}
}

// wantsText returns the path and the text of a value that is not text but must be, if err says so.
func wantsText(err error, texts map[string]string) (path, text string, ok bool) {
	eachDecodeError(err, "", func(at string, cause error) {
		var wrong *unconvertible
		if t, given := texts[at]; given && errors.As(cause, &wrong) && wrong.Expected.Kind() == reflect.String {
			path, text, ok = at, t, true
		}
	})
	return path, text, ok
}

// withText returns a copy of tree in which the value at path is text.
func withText(tree any, path []string, text string) any {
	if len(path) == 0 {
		return text
	}
	switch t := tree.(type) {
	case map[string]any:
		t = maps.Clone(t)
		t[path[0]] = withText(t[path[0]], path[1:], text)
		return t
	case []any:
		out := append([]any{}, t...)
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(out) {
			out[i] = withText(out[i], path[1:], text)
		}
		return out
	}
	return tree
}

// copyTree returns a deep copy of a tree, because decoding may modify its input.
func copyTree(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, c := range v {
			out[k] = copyTree(c)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, c := range v {
			out[i] = copyTree(c)
		}
		return out
	}
	return v
}

// GivenTree implements [yamltree.TreeConfig].
func (c *Config) GivenTree() map[string]any { return c.given }

// EffectiveTree implements [yamltree.TreeConfig].
func (c *Config) EffectiveTree() (tree map[string]any) {
	defer func() {
		if recover() != nil {
			tree = map[string]any{"": yamltree.MaskedSecret} // nothing may be shown
		}
	}()
	conf := confmap.New()
	if err := conf.Marshal(c.value); err != nil {
		panic(err)
	}
	tree = plain(reflect.ValueOf(conf.ToStringMap())).(map[string]any)
	complete(tree, c.given, reflect.TypeOf(c.value))
	return tree
}

// complete adds keys to an effective tree that the user has set but the Collector omits when it
// writes a configuration: keys of structs that are embedded under a private name.
func complete(effective, given any, t reflect.Type) {
	if t == nil {
		return
	}
	switch given := given.(type) {
	case map[string]any:
		block, ok := effective.(map[string]any)
		for k, v := range given {
			at := typeAt(t, k)
			if !ok || at == nil {
				continue
			}
			if _, there := block[k]; !there {
				block[k] = withoutSecrets(v, at)
				continue
			}
			complete(block[k], v, at)
		}
	case []any:
		list, _ := effective.([]any)
		for i, v := range given[:min(len(given), len(list))] {
			complete(list[i], v, typeAt(t, strconv.Itoa(i)))
		}
	}
}

// withoutSecrets returns a copy of the values that the user has set, without secrets and possible
// secrets.
func withoutSecrets(given any, t reflect.Type) any {
	switch {
	case t == nil || t == reflect.TypeFor[configopaque.String]():
		return yamltree.MaskedSecret
	case t.Kind() == reflect.Interface:
		return given
	}
	switch given := given.(type) {
	case map[string]any:
		out := make(map[string]any, len(given))
		for k, v := range given {
			out[k] = withoutSecrets(v, typeAt(t, k))
		}
		return out
	case []any:
		out := make([]any, len(given))
		for i, v := range given {
			out[i] = withoutSecrets(v, typeAt(t, strconv.Itoa(i)))
		}
		return out
	}
	if t.Kind() <= reflect.Float64 || t.Kind() == reflect.String || reflect.PointerTo(t).Implements(textUnmarshaler) {
		return given
	}
	return yamltree.MaskedSecret // text where the configuration has a block or a list
}

// opaque is how the Collector shows a secret.
const opaque = "[REDACTED]"

// plain returns a value that consists of maps, lists and the types of YAML scalars.
func plain(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return plain(v.Elem())
	case reflect.Map:
		out := make(map[string]any, v.Len())
		for _, k := range v.MapKeys() {
			out[fmt.Sprint(k.Interface())] = plain(v.MapIndex(k))
		}
		return out
	case reflect.Slice, reflect.Array:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = plain(v.Index(i))
		}
		return out
	case reflect.String:
		if v.String() == opaque {
			return yamltree.MaskedSecret
		}
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Float32, reflect.Float64:
		return v.Float()
	case reflect.Invalid, reflect.Func, reflect.Chan:
		return nil
	}
	if s, ok := v.Interface().(fmt.Stringer); ok { // a duration
		return s.String()
	}
	return v.Interface()
}
