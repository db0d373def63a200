package yamltree_test

import (
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/tracing-backend/tracing/pipeline/internal/config/yamltree"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// outside is what the sources of these tests may refer to.
func outside() *yamltree.Expander {
	env := map[string]string{"HOST": "example.org", "EMPTY": "", "NUMBER": "42", "YAML": "{a: [b, c]}", "DOLLAR": "${HOST}$$"}
	return &yamltree.Expander{
		LookupEnv: func(name string) (string, bool) {
			v, ok := env[name]
			return v, ok
		},
		ReadFile: func(path string) ([]byte, error) {
			switch path {
			case "/token":
				return []byte("s3cret\r\n\n"), nil
			case "/huge":
				return make([]byte, 1<<20+1), nil
			}
			return nil, errors.New("no such file")
		},
	}
}

// files makes sources named 1.yaml, 2.yaml and so on.
func files(texts ...string) []yamltree.Source {
	var sources []yamltree.Source
	for i, text := range texts {
		sources = append(sources, yamltree.Source{Name: string(rune('1'+i)) + ".yaml", YAML: []byte(text)})
	}
	return sources
}

// read loads sources that have no mistakes.
func read(t *testing.T, texts ...string) *yamltree.Tree {
	t.Helper()
	tree, problems := yamltree.Load(files(texts...), outside())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return tree
}
