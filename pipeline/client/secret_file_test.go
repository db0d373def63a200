package client

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

func TestSecretFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Unix(1000, 0)
	s := NewSecretFile(pipeline.Settings{Logger: zap.NewNop(), Env: pipeline.Env{Now: func() time.Time { return now }}}, file)
	if err := s.Load(); err == nil {
		t.Error("loaded a file that does not exist")
	}
	write("\n")
	if err := s.Load(); err == nil {
		t.Error("loaded an empty file")
	}
	write("first \n")
	if err := s.Load(); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ text, want string }{{"first \n", "first "}, {"second\r\n", "second"}, {"", "second"}} {
		write(step.text)
		now = now.Add(defaultReload)
		if got := string(s.Get()); got != step.want {
			t.Errorf("after %q: %q, want %q", step.text, got, step.want)
		}
	}
}
