// Command image writes the container image of the program, for all architectures that programs are
// given for, without a container engine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/tracing-backend/tracing/tools/internal/image"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o := image.Options{Programs: make(map[string]string)}
	fs := flag.NewFlagSet("image", flag.ExitOnError)
	fs.StringVar(&o.Dir, "dir", ".", "Root of the repository.")
	fs.StringVar(&o.Version, "version", "dev", "Version of the image.")
	fs.StringVar(&o.Out, "out", "tracing-oci.tar", "Archive to write.")
	fs.Func("program", "ARCHITECTURE=PATH of a program for Linux. May be repeated.", func(text string) error {
		arch, path, found := strings.Cut(text, "=")
		if !found {
			return fmt.Errorf("%q is not ARCHITECTURE=PATH", text)
		}
		o.Programs[arch] = path
		return nil
	})
	if err := fs.Parse(args); err != nil {
		return err
	}
	return image.Write(ctx, o)
}
