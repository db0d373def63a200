package pipeline

import (
	"net/url"
	"strings"
	"testing"
)

func TestMaskURLs(t *testing.T) {
	for text, want := range map[string]string{
		"":                                                "",
		"localhost:4317":                                  "localhost:4317",
		"http://localhost:4318":                           "http://localhost:4318",
		"http://h/a/b?":                                   "http://h/a/b?",
		"https://h/s.json?token=abc&region=eu":            "https://h/s.json?token=***&region=***",
		"https://h/s.json?abc":                            "https://h/s.json?***",
		"https://h/s.json?a=&b=c#secret":                  "https://h/s.json?a=&b=***#***",
		"https://ann:secret@h:1/x":                        "https://***@h:1/x",
		"https://secret@h":                                "https://***@h",
		"https://h/@scope/x":                              "https://h/@scope/x",
		"http://ann:pa/ss@h/x":                            "http://***@h/x",
		"http://ann:pa@ss@h":                              "http://***@h",
		"http://ann:pa?ss@h/x":                            "http://***@h/x",
		"http://ann:pa#ss@h/x?k=secret":                   "http://***@h/x?k=***",
		"http://ann:secret@h:badport/x":                   "http://***@h:badport/x",
		"a://x?k=secret, b://ann:secret@y; done":          "a://x?k=*** b://***@y; done",
		`cannot read "https://h/x?token=secret": refused`: `cannot read "https://h/x?token=***": refused`,
		"at 'grpc://ann:secret@h' and https://h/?k=secret failed": "at 'grpc://***@h' and https://h/?k=*** failed",
		"http://a:1,http://ann:secret@b:2":                        "http://***@b:2",
	} {
		if got := MaskURLs(text); got != want {
			t.Errorf("MaskURLs(%q) = %q, want %q", text, got, want)
		}
	}
}

// FuzzMaskURLs checks that masking never shows the password, the query value or the fragment of a
// valid URL.
func FuzzMaskURLs(f *testing.F) {
	f.Add("user", "/path", "k")
	f.Add("", "", "")
	f.Add("a@b", "/@x", "a&b")
	const secret = "S3CR3T"
	f.Fuzz(func(t *testing.T, user, path, key string) {
		u := url.URL{Scheme: "https", Host: "h", Path: path, User: url.UserPassword(user, secret),
			RawQuery: url.Values{key: {secret}}.Encode(), Fragment: secret}
		if strings.Contains(user+path+key, secret) {
			return
		}
		if got := MaskURLs(u.String()); strings.Contains(got, secret) {
			t.Errorf("%q is masked as %q", u.String(), got)
		}
	})
}
