package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/tracing-backend/tracing/pipeline/internal/config"
)

// Subcommands that only print something.

func (c *command) version(context.Context) int {
	fmt.Fprintf(c.stdout, "tracing %s %s %s\n", c.build.Version, c.build.Commit, c.build.Date)
	return exitOK
}

func (c *command) validate(context.Context) int {
	app, code := c.prepare()
	if app == nil {
		return code
	}
	c.printWarnings(app.Config())
	if err := app.Config().CheckFiles(); err != nil {
		fmt.Fprintln(c.stderr, err)
		return exitUsage
	}
	fmt.Fprintln(c.stdout, "the configuration is valid")
	return exitOK
}

func (c *command) printWarnings(cfg *config.Config) {
	for _, w := range cfg.Warnings() {
		fmt.Fprintln(c.stderr, "warning:", w)
	}
}

func (c *command) printConfig(context.Context) int {
	app, code := c.prepare()
	if app == nil {
		return code
	}
	c.printWarnings(app.Config())
	options := config.PrintOptions{Origin: c.origin, Defaults: c.defaults, Durability: app.Durability}
	if err := app.Config().Print(c.stdout, options); err != nil {
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
		app.WriteDot(c.stdout)
	} else {
		app.WriteGraph(c.stdout)
	}
	return exitOK
}

func (c *command) components(context.Context) int {
	if err := config.ListComponents(c.stdout, c.load.Factories, c.operand); err != nil {
		return c.misuse(err)
	}
	return exitOK
}

func (c *command) docs(context.Context) int {
	config.WriteReference(c.stdout, c.load.Factories)
	return exitOK
}

// synopsis prints all uses of the program.
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

// usage prints all uses of the program and all flags.
func (c *command) usage(out io.Writer) {
	c.synopsis(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\nflags:\n"+
		"  --config FILE\tConfiguration file. May be repeated; later files override earlier ones.\n"+
		"  --set PATH=VALUE\tOverrides one value. Parts of the path are joined by \"::\", or by dots if no key contains a dot.\n"+
		"  --strict\tTreats warnings as errors.\n"+
		"\nflags that set configuration keys; each is also an environment variable (LOG_LEVEL for --log-level):\n")
	for _, d := range config.FlagDocs(c.load.Factories) {
		fmt.Fprintf(w, "  --%s\t%s\n", d.Name, d.Doc)
	}
	w.Flush() //nolint:errcheck // a terminal
}
