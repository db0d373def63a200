package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

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
		return c.misuse(c.chosen, err)
	}
	return exitOK
}

func (c *command) docs(context.Context) int {
	for i, page := range config.ReferencePages(c.load.Factories) {
		if c.operand != "" {
			if err := writePage(filepath.Join(c.operand, filepath.FromSlash(page.Name)), page.Markdown); err != nil {
				return c.fail(err)
			}
			continue
		}
		if i > 0 {
			fmt.Fprintln(c.stdout)
		}
		fmt.Fprint(c.stdout, page.Markdown)
	}
	return exitOK
}

// writePage writes a file, and creates its folder if necessary.
func writePage(file, content string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(content), 0o644)
}
