package migrate

import (
	"fmt"
	"slices"
)

// otherSource returns what to translate instead of a document from which other programs build
// command lines for Jaeger 1, or "".
func otherSource(d *document) string {
	switch {
	case d.root.text("kind") == "Jaeger":
		return fmt.Sprintf("the operator of Jaeger 1 makes Deployments of it; translate these: "+
			"kubectl get deployments,daemonsets -l app.kubernetes.io/instance=%s -o yaml | tracing migrate -",
			firstOf(d.root.text("metadata", "name"), "NAME"))
	case d.root.has("provisionDataStore") || slices.ContainsFunc([]string{"allInOne", "collector", "query", "agent", "ingester"},
		func(program string) bool {
			return d.root.has(program, "cmdlineParams") || d.root.has(program, "extraEnv")
		}):
		return "these are values of the chart of Jaeger 1; translate what it renders: helm template NAME CHART -f FILE | tracing migrate -"
	}
	return ""
}

// isRemoteStorage reports whether a document is a file of jaeger-remote-storage.
func isRemoteStorage(d *document) bool {
	return d.root.has("grpc") && d.root.has("storage", "backends") && !isFragment(d)
}

// remoteStorage returns the Jaeger 2 configuration that serves the first backend of a file of
// jaeger-remote-storage.
func remoteStorage(d *document) *document {
	storage, server := d.root.block("storage"), d.root.ensure("grpc").node
	backends := storage.ensure("backends")
	d.root.remove("grpc")
	storage.remove("backends")
	if len(storage.keys()) == 0 {
		d.root.remove("storage")
	}
	all := d.root.ensure(extensions)
	all.ensure("jaeger_storage").setNode("backends", backends.node)
	all.setNode("remote_storage", server)
	s := all.block("remote_storage")
	s.rename("host-port", "endpoint")
	if names := backends.keys(); len(names) > 0 {
		s.setText("storage", names[0])
		if len(names) > 1 {
			s.note(decide, "storage", "several backends; the first is served: name the exporter of another one here")
		}
	}
	for _, id := range all.keys() {
		d.root.ensure("service").addItem(extensions, id)
	}
	return d
}
