package pipeline

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// The subcommands that only show something.

func (c *command) version(context.Context) int {
	b := buildInfo()
	fmt.Fprintf(c.stdout, "tracing %s %s %s\n", b.Version, b.Commit, b.Date)
	return exitOK
}

func (c *command) printConfig(context.Context) int {
	app, code := c.prepare()
	if app == nil {
		return code
	}
	c.warn(app.config)
	p := &printer{tree: app.config.tree, origin: c.origin, defaults: c.defaults}
	if err := p.print(c.stdout, app); err != nil {
		return c.fail(err)
	}
	return exitOK
}

func (c *command) graph(context.Context) int {
	app, code := c.prepare()
	if app == nil {
		return code
	}
	if c.dot {
		app.writeDot(c.stdout)
	} else {
		app.writeGraph(c.stdout)
	}
	return exitOK
}

func (c *command) components(context.Context) int {
	if err := c.listComponents(c.stdout, c.word); err != nil {
		return c.misuse(err)
	}
	return exitOK
}

func (c *command) docs(context.Context) int {
	c.writeDocs(c.stdout)
	return exitOK
}

func (c *command) healthcheck(ctx context.Context) int {
	if c.endpoint == "" {
		config, err := Load(c.load)
		if err != nil {
			fmt.Fprintln(c.stderr, err)
			return exitUsage
		}
		if c.endpoint, err = config.adminEndpoint(); err != nil {
			return c.misuse(err)
		}
	}
	if err := askHealth(ctx, c.endpoint); err != nil {
		return c.fail(err)
	}
	fmt.Fprintln(c.stdout, "ready")
	return exitOK
}

func (c *command) fail(err error) int {
	fmt.Fprintf(c.stderr, "tracing: %v\n", err)
	return exitFailed
}

// synopsis writes the ways to use the program.
func (c *command) synopsis(out io.Writer) {
	head := "usage: "
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range c.subcommands() {
		fmt.Fprintf(w, "%s%s\t%s\n", head, strings.Join(strings.Fields("tracing "+s.name+" "+s.args), " "), s.doc)
		head = "       "
	}
	for _, own := range c.ownCommands() {
		fmt.Fprintf(w, "%stracing %s %s\t%s\n", head, own.Name, own.Args, own.Doc)
	}
	w.Flush() //nolint:errcheck // a terminal
	fmt.Fprintf(out, "\npresets: %s\n", strings.Join(c.presets(), ", "))
}

func (c *command) usage(out io.Writer) {
	c.synopsis(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\nflags:\n"+
		"  --config FILE\tConfiguration file; may be repeated, later files override.\n"+
		"  --set PATH=VALUE\tOverrides one value; parts of the path are joined by \"::\", or by dots where no key has one.\n"+
		"  --strict\tTreats warnings as errors.\n"+
		"\nflags that stand for configuration; each is an environment variable, too (LOG_LEVEL for --log-level):\n")
	for _, f := range knownFlags(c.load.Factories) {
		doc := f.Doc
		if f.Instead != "" {
			doc = "Has no effect: " + f.Instead + "."
		}
		fmt.Fprintf(w, "  --%s\t%s\n", f.Name, doc)
	}
	w.Flush() //nolint:errcheck // a terminal
}
