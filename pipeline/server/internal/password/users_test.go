package password

import (
	"strings"
	"testing"
)

func TestBadConfig(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"must not be below min_delay":   func(c *Config) { c.MaxDelay = 1 },
		"must be from 4 to 31, not 3":   func(c *Config) { c.MaxCost = 3 },
		"must be from 1 to 1024, not 0": func(c *Config) { c.MaxConcurrent = 0 },
		"must be above 0":               func(c *Config) { c.WaitTimeout = 0 },
	} {
		cfg := DefaultConfig()
		change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for content, want := range map[string]string{
		"ann:plain":                              "users:1: not a user with a bcrypt hash",
		"# users\nann":                           "users:2: not a user",
		"ann:" + hashOf("x", 18):                 "users:1: bcrypt cost 18 exceeds max_cost of 17",
		"ann:" + hashOf("x", 10) + "x":           "not a user with a bcrypt hash",
		"ann:" + hashOf("ä", 10):                 "not a user with a bcrypt hash",
		"ann:$2a$10$" + strings.Repeat("!", 53):  "not a user with a bcrypt hash",
		"ann:$3a$10$" + strings.Repeat("a", 53):  "not a user with a bcrypt hash",
		"ann:$apr1$abcdefgh$abcdefghijklmnopqrs": "not a user with a bcrypt hash",
	} {
		if _, err := Parse("users", []byte(content), 17, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", content, err, want)
		}
	}
}

// FuzzParse checks that parsing any file ends without a panic, and that every user that it accepts
// costs the same work.
func FuzzParse(f *testing.F) {
	f.Add([]byte("ann:" + hashOf("secret", 10) + "\n# comment\nbob:" + hashOf("x", 4)))
	f.Add([]byte("ann:$2y$05$\nann"))
	f.Fuzz(func(t *testing.T, content []byte) {
		u, err := Parse("users", content, 12, nil)
		if err != nil {
			return
		}
		for name, e := range u.byName {
			if e.cost > u.maxCost || u.maxCost > 12 || len(e.hash) < 59 {
				t.Errorf("%q: cost %d of %d, hash %q", name, e.cost, u.maxCost, e.hash)
			}
		}
	})
}
