package otelcol

import (
	"errors"
	"regexp"
	"strings"

	"github.com/go-viper/mapstructure/v2"

	"go.opentelemetry.io/collector/component"

	"github.com/tracing-backend/tracing/pipeline"
)

const delim = "::"

// decodeErrors returns an error of Unmarshal as errors of keys.
func decodeErrors(config component.Config, err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range many.Unwrap() {
			all = append(all, decodeErrors(config, e))
		}
		return errors.Join(all...)
	}
	var d *mapstructure.DecodeError
	if !errors.As(err, &d) {
		if inner := errors.Unwrap(err); inner != nil {
			return decodeErrors(config, inner)
		}
		return err
	}
	path := pathOf(d.Name())
	keys, unknown := strings.CutPrefix(d.Unwrap().Error(), "has invalid keys: ")
	if !unknown {
		return pipeline.BadKey(path, "%s", valueMessage(d.Unwrap()))
	}
	var all []error
	for _, k := range strings.Split(keys, ", ") {
		all = append(all, pipeline.UnknownKey(joinPath(path, k), k, knownKeys(config, path)))
	}
	return errors.Join(all...)
}

var namePart = regexp.MustCompile(`[^.\[\]]+`)

// pathOf returns the path of a name of mapstructure: `actions[0].key`.
func pathOf(name string) string { return strings.Join(namePart.FindAllString(name, -1), delim) }

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + delim + key
}

// valueMessage returns what is wrong with a value.
func valueMessage(err error) string { return err.Error() }

// knownKeys returns the keys of the block at path.
func knownKeys(component.Config, string) []string { return nil }

// validationErrors returns the error of Validate as errors of keys. tree is what the user has set.
func validationErrors(_ map[string]any, err error) error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range many.Unwrap() {
			all = append(all, validationErrors(nil, e))
		}
		return errors.Join(all...)
	}
	inner := errors.Unwrap(err)
	if inner == nil {
		return err
	}
	path, ok := strings.CutSuffix(err.Error(), ": "+inner.Error())
	if !ok || strings.Contains(path, " ") {
		return err
	}
	return pipeline.BadKey(path, "%v", inner)
}
