package password

import (
	"strings"
	"testing"
)

func TestClient(t *testing.T) {
	c, _, _ := newChecker(t, func(c *Config) { c.TrustedProxies = []string{"10.1.0.0/16", "fd00::1"} })
	for _, x := range []struct{ remote, forwarded, want string }{
		{"192.0.2.7:1234", "", "192.0.2.7"},
		{"[::ffff:192.0.2.7]:1234", "", "192.0.2.7"},
		{"[2001:db8:1:2:3:4:5:6]:1234", "", "2001:db8:1:2::/64"},
		{"[fe80::1%eth0]:1234", "", "fe80::/64"},
		{"@", "", "@"},
		{"", "", ""},
		{"192.0.2.7:1234", "198.51.100.1", "192.0.2.7"}, // not a trusted proxy
		{"10.1.2.3:1234", "", "10.1.2.3:1234"},
		{"10.1.2.3:1234", "198.51.100.1", "198.51.100.1"},
		{"10.1.2.3:1234", "1.1.1.1, 198.51.100.1, 10.1.9.9", "198.51.100.1"}, // the client has set the first
		{"10.1.2.3:1234", "10.1.9.9", "10.1.9.9"},
		{"10.1.2.3:1234", "198.51.100.1, unknown", "10.1.2.3:1234"},
		{"[fd00::1]:1234", "2001:db8::1", "2001:db8::/64"},
	} {
		header := func(string) []string { return []string{x.forwarded} }
		if got := c.Client(x.remote, header); got != x.want {
			t.Errorf("Client(%q, %q) = %q, want %q", x.remote, x.forwarded, got, x.want)
		}
	}
}

func TestBadConfig(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`"proxy.example" is neither`:    func(c *Config) { c.TrustedProxies = []string{"proxy.example"} },
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
