package query

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/internal/webui"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// UIConfig are the keys below `ui`.
type UIConfig struct {
	Path           string   `yaml:"path" path:"folder" doc:"Folder with a web UI to serve instead of the built-in one: another build of it (internal/webui/dist), or the Jaeger UI (index.html and static/)."`
	ConfigFile     string   `yaml:"config_file" path:"file" doc:"File with the settings of a Jaeger UI in path, in .json or .js format. Changes are applied within 10 seconds."`
	LinkPreviews   bool     `yaml:"link_previews" doc:"Whether the pages of traces describe them in Open Graph tags, which chat programs show beside links: services, name of the root, duration and number of errors. They are served without credentials."`
	FrameAncestors []string `yaml:"frame_ancestors" doc:"Origins of web pages that may embed the web UI in a frame, besides its own: https://dashboards.example.com, https://*.example.com for all subdomains, or * for all."`
}

// Validate checks the origins, and that config_file has a supported format and belongs to a UI.
func (c *UIConfig) Validate() error {
	var errs []error
	for _, origin := range c.FrameAncestors {
		if !isOrigin(origin) {
			errs = append(errs, pipeline.BadKey("frame_ancestors", "%q is not an origin; write, for example, https://dashboards.example.com, or *", origin))
		}
	}
	switch {
	case c.ConfigFile == "":
	case c.Path == "":
		errs = append(errs, pipeline.BadKey("config_file", "requires path, the folder of the web UI that it configures"))
	case !isUISettings(c.ConfigFile):
		errs = append(errs, pipeline.BadKey("config_file", "unrecognized UI config file format, expecting .js or .json file: %s", c.ConfigFile))
	}
	return errors.Join(errs...)
}

// isOrigin reports whether a text is * or the scheme, host and port of web pages. The text becomes
// part of a header.
func isOrigin(text string) bool {
	if text == "*" {
		return true
	}
	scheme, host, _ := strings.Cut(text, "://")
	host = strings.TrimPrefix(host, "*.")
	u, err := url.Parse(scheme + "://" + host)
	return err == nil && (scheme == "http" || scheme == "https") && host != "" && u.Host == host && !strings.ContainsAny(host, `*;,'" `)
}

// ui serves the web UI, either the one in the program or one in a folder.
type ui struct {
	config    UIConfig
	base      string
	boot      boot
	documents fs.FS // files of the repository with the documentation; nil if it is not served

	preview func(*http.Request, string) (webui.Preview, bool) // nil: none

	root   *os.Root    // nil if config.Path is empty
	site   *webui.Site // nil if the folder has a Jaeger UI
	jaeger *jaegerUI
}

// boot is the data that the page has before its first request.
type boot struct {
	Version      httpapi.Version `json:"version"`
	Auth         []string        `json:"auth"`         // accepted authentication schemes: basic, bearer; the API requires one of them
	TenantHeader string          `json:"tenantHeader"` // "" if tenants are not separated
}

func newUI(set pipeline.Settings, c *Config, base string, archive bool, hasMetrics func(context.Context) bool) *ui {
	u := &ui{config: c.UI, base: base, boot: boot{Auth: authSchemes(c.HTTP)}}
	if set.Process != nil {
		b := set.Process.Build()
		u.boot.Version = httpapi.Version{Commit: b.Commit, Version: b.Version, Date: b.Date}
	}
	if t, on := c.HTTP.Tenancy.Get(); on && t.Enabled {
		u.boot.TenantHeader = t.Header
	}
	u.jaeger = &jaegerUI{
		base: base, configFile: c.UI.ConfigFile, archive: archive, hasMetrics: hasMetrics, version: u.boot.Version,
		logger: set.Logger, now: set.Env.Now,
	}
	return u
}

// authSchemes returns the authentication schemes that a listener accepts, or none if it needs no
// credentials.
func authSchemes(c server.HTTPConfig) []string {
	schemes := []string{}
	a, on := c.Auth.Get()
	if on && a.HtpasswdFile != "" {
		schemes = append(schemes, "basic")
	}
	if on && a.BearerTokensFile != "" {
		schemes = append(schemes, "bearer")
	}
	return schemes
}

// open reads the page for the first time.
func (u *ui) open() (err error) {
	if u.config.Path == "" {
		u.site, err = u.newSite(webui.Embedded())
		return err
	}
	if u.root, err = os.OpenRoot(u.config.Path); err != nil {
		return fmt.Errorf("ui::path: %w", err)
	}
	u.site, err = u.newSite(webui.Folder(u.root.FS()))
	switch {
	case errors.Is(err, webui.ErrNotOurs) && u.config.LinkPreviews:
		err = fmt.Errorf("link_previews is not possible with the Jaeger UI; remove it, because %s has that UI", u.config.Path)
	case errors.Is(err, webui.ErrNotOurs):
		err = u.jaeger.open(u.root)
	case err == nil && u.config.ConfigFile != "":
		err = fmt.Errorf("config_file is for the Jaeger UI; remove it, because %s has another UI", u.config.Path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("ui: %w", err), u.close())
	}
	return nil
}

func (u *ui) newSite(b webui.Build) (*webui.Site, error) {
	o := webui.Options{
		Base: u.base, FrameAncestors: u.config.FrameAncestors, Boot: u.boot,
		AcceptsGzip: func(r *http.Request) bool { return httpapi.AcceptsGzip(r.Header) },
	}
	if u.config.LinkPreviews {
		o.Preview = u.preview
	}
	if len(u.boot.Auth) == 0 && u.boot.TenantHeader == "" {
		o.TracePath = "/api/ui/v1/outline/"
	}
	return webui.New(b, o)
}

func (u *ui) close() error {
	if u.root == nil {
		return nil
	}
	return u.root.Close()
}

// ServeHTTP serves all paths that are not routes of the APIs.
func (u *ui) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if u.site == nil {
		u.jaeger.ServeHTTP(w, r)
		return
	}
	u.site.ServeHTTP(w, r)
}

// pattern is the route of the UI in a ServeMux.
func (u *ui) pattern() string { return u.base + "/" }

// isPublic reports whether a request to mux needs neither credentials nor a tenant: it is for the
// documentation, or for the UI in the program or a build of it, whose files contain no data. A
// Jaeger UI relies on the browser's dialog for credentials, and its settings may be confidential.
func (u *ui) isPublic(mux *http.ServeMux, r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	switch _, pattern := mux.Handler(r); pattern {
	case u.pattern():
		return u.site != nil
	case "GET " + u.base + docsPath, "GET " + u.base + docsPath + "/":
		return true
	}
	return false
}
