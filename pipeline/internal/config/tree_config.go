package config

import (
	"fmt"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

// decodeTree passes the block at path to a configuration that decodes itself.
func (l *loader) decodeTree(config yamltree.TreeConfig, path []string) {
	value, texts, problems := l.tree.Values(path...)
	if len(problems) > 0 {
		l.problems = append(l.problems, problems...)
		return
	}
	block, ok := value.(map[string]any)
	if !ok && value != nil {
		l.problem(l.tree.ValuePos(path...), path, "must be a block of keys")
		return
	}
	if block == nil {
		block = map[string]any{}
	}
	l.reportInvalid(path, unmarshalSafely(config, block, texts))
}

// unmarshalSafely calls UnmarshalTree, which may be code of a component's author that panics.
func unmarshalSafely(config yamltree.TreeConfig, block map[string]any, texts map[string]string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG: decoding the configuration panicked: %v", p)
		}
	}()
	return config.UnmarshalTree(block, texts)
}

// reportUnknownKey reports a key that a configuration at path does not have.
func (l *loader) reportUnknownKey(path []string, unknown *yamltree.UnknownKeyError) {
	parts := strings.Split(unknown.Key, yamltree.Delim)
	at := append(path[:len(path):len(path)], parts...)
	name := parts[len(parts)-1]
	l.problem(l.tree.KeyPos(at...), at[:len(at)-1], "%s%s", unknown.Msg, yamltree.Suggest(name, unknown.Known, "known"))
}
