package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// part is one configuration in the input: a document of the Collector or of Jaeger 2, or a program
// of Jaeger 1.
type part struct {
	name    string // selects the part
	key     string // of the part in a ConfigMap
	doc     *document
	program *jaeger1Program
}

// from returns the format of a part.
func (p part) from() From {
	switch {
	case p.program != nil:
		return Jaeger1
	case isJaeger2(p.doc):
		return Jaeger2
	}
	return OtelCol
}

// list lists what is not in the output.
func (p part) list(kind noteKind, items []string, reason string) {
	if p.program != nil {
		p.program.lists = append(p.program.lists, listing{kind, items, reason})
	} else {
		p.doc.list(kind, items, reason)
	}
}

// listing is a note about several items.
type listing struct {
	kind   noteKind
	items  []string
	reason string
}

// errUnknown is the error for a document without a configuration.
var errUnknown = errors.New("no sections such as receivers, exporters and service")

// read returns the configurations in the input. Everything else in the input is listed in the first
// of them.
func (in *Input) read() ([]part, error) {
	text := string(in.Source)
	docs, err := split(text)
	if err != nil {
		if in.From == Jaeger1 || in.From == Auto && isJaeger1(text) {
			p, err := readText(text)
			if err != nil {
				return nil, err
			}
			return []part{p}, nil
		}
		return nil, in.notRecognized(err)
	}
	var parts []part
	var rest, fragments, broken, options []string
	for i, d := range docs {
		found, err := in.readDocument(d, len(docs) == 1)
		if err != nil {
			return nil, err
		}
		for j := range found {
			if found[j].name == "" {
				found[j].name = fmt.Sprintf("document-%d", i+1)
			}
		}
		if len(d.taken) == 0 {
			rest = append(rest, d.title())
		} else {
			rest = append(rest, d.rest()...)
		}
		fragments = append(fragments, d.fragments...)
		broken = append(broken, d.broken...)
		options = append(options, d.options()...)
		parts = append(parts, found...)
	}
	switch {
	case len(parts) == 0 && len(broken) > 0:
		return nil, fmt.Errorf("no configuration that can be read: %s", strings.Join(broken, "; "))
	case len(parts) == 0 && len(fragments) > 0:
		return nil, fmt.Errorf("no complete configuration: merge the parts %s into one file", strings.Join(fragments, ", "))
	case len(parts) == 0 && len(docs) == 1:
		return nil, in.notRecognized(errUnknown)
	case len(parts) == 0:
		return nil, fmt.Errorf("no configuration in %d YAML documents: %s", len(docs), strings.Join(rest, "; "))
	}
	if parts, err = in.selected(parts); err != nil {
		return nil, err
	}
	parts[0].list(dropped, rest, "no part of a configuration")
	for _, b := range broken {
		parts[0].list(decide, []string{b}, "looks like a configuration; correct it, and translate it by itself")
	}
	parts[0].list(decide, fragments, "only a part of a configuration; merge it into the configuration that needs it, and translate that")
	parts[0].list(decide, options, "the program merges these; translate each file by itself, and start tracing with the same options")
	return parts, nil
}

func (in *Input) notRecognized(err error) error {
	if in.From != Auto {
		return err
	}
	return fmt.Errorf("format not recognized: %w; say which one it is with --from otelcol, jaeger1 or jaeger2", err)
}

// readDocument returns the configurations in a YAML document. If it is the only document, it may
// also lack the sections by which configurations are recognized.
func (in *Input) readDocument(d *document, only bool) (found []part, err error) {
	if in.From != Jaeger1 {
		if isConfiguration(d) {
			d.taken = append(d.taken, d.root.node)
			return []part{{doc: d}}, nil
		}
		found = embedded(d)
	}
	if in.From == Auto || in.From == Jaeger1 {
		programs, err := readManifest(d)
		if err != nil {
			return nil, err
		}
		for _, p := range programs {
			found = append(found, part{name: p.name, program: p})
		}
	}
	switch {
	case len(found) > 0:
		return found, nil
	case otherSource(d) != "":
		return nil, fmt.Errorf("%s: %s", d.title(), otherSource(d))
	case isRemoteStorage(d):
		d.taken = append(d.taken, d.root.node)
		return []part{{doc: remoteStorage(d)}}, nil
	case !only:
		return nil, nil
	case d.root.has("services"):
		return nil, errNoService
	case in.From == Jaeger1, in.From == Auto && isFlags(d):
		d.taken = append(d.taken, d.root.node)
		args := flatten(d.root.node, "")
		return []part{{program: &jaeger1Program{preset: presetFor(args), args: args}}}, nil
	case in.From != Auto:
		d.taken = append(d.taken, d.root.node)
		return []part{{doc: d}}, nil
	}
	return nil, nil
}

// selected returns the parts with the requested name, by default all.
func (in *Input) selected(parts []part) ([]part, error) {
	if in.Service != "" {
		var names []string
		for _, p := range parts {
			names = append(names, p.name)
		}
		parts = slices.DeleteFunc(parts, func(p part) bool {
			return p.name != in.Service && !strings.HasPrefix(p.name, in.Service+"/")
		})
		if len(parts) == 0 {
			return nil, fmt.Errorf("--service %s: input has these configurations: %s", in.Service, strings.Join(names, ", "))
		}
	}
	return parts, nil
}
