package foreign

import (
	"regexp"
	"slices"

	"gopkg.in/yaml.v3"
)

// programs recognizes files of other programs by words that occur only in them.
var programs = []struct {
	matches func(keys map[string]yaml.Node, text []byte) bool
	hint    func(file string) string
}{
	{isManifest, func(file string) string {
		return "this is a manifest of Kubernetes; run `tracing migrate " + file + "` for the configurations in it"
	}},
	{isRemoteStorage, func(file string) string {
		return "this is a configuration of jaeger-remote-storage; run `tracing migrate " + file + "`"
	}},
	{isChart, func(file string) string {
		return "these are values of a chart; run `tracing migrate " + file + "` for the configuration in them"
	}},
	{isJaeger2, func(file string) string {
		return "this is a Jaeger 2 configuration; run `tracing migrate " + file + "`"
	}},
	{isTempo, func(string) string {
		return "this is a Tempo configuration; docs/migrating/tempo.md lists what takes the place of its keys"
	}},
	{isCompose, func(file string) string {
		return "this is a compose file; run `tracing migrate " + file + "` for its services of Jaeger 1"
	}},
	{isJaeger1, func(file string) string {
		return "these are flags of Jaeger 1; run `tracing migrate --from jaeger1 " + file + "`"
	}},
}

// maxRecognized is the maximum size of a file that is recognized, in bytes.
const maxRecognized = 1 << 20

// Recognize returns what to do with the configuration file of another program, or "" if it is not
// the file of a known program. text is the content of the file.
func Recognize(file string, text []byte) (hint string) {
	if len(text) > maxRecognized {
		return ""
	}
	var keys map[string]yaml.Node
	if yaml.Unmarshal(text, &keys) != nil {
		keys = nil // perhaps not YAML at all
	}
	for _, p := range programs {
		if p.matches(keys, text) {
			return p.hint(file)
		}
	}
	return ""
}

var jaeger2Component = regexp.MustCompile(`^(jaeger_storage|jaeger_query|jaeger_storage_exporter|jaeger_storage_writer|remote_sampling)(/|$)`)

// Identifies reports whether Recognize recognizes a program by a type of component.
func Identifies(typ string) bool { return jaeger2Component.MatchString(typ) }

// isJaeger2 reports whether there is a component that only Jaeger 2 has.
func isJaeger2(keys map[string]yaml.Node, _ []byte) bool {
	for _, section := range []string{"extensions", "exporters", "connectors"} {
		node := keys[section]
		var components map[string]yaml.Node
		if node.Decode(&components) != nil {
			continue
		}
		for id := range components {
			if Identifies(id) {
				return true
			}
		}
	}
	return false
}

// isManifest reports whether the file has the keys of Kubernetes. It may have several documents.
func isManifest(keys map[string]yaml.Node, _ []byte) bool {
	_, kind := keys["kind"]
	_, version := keys["apiVersion"]
	return kind && version
}

// isRemoteStorage reports whether the file has the sections of jaeger-remote-storage.
func isRemoteStorage(keys map[string]yaml.Node, _ []byte) bool {
	node := keys["storage"]
	var storage map[string]yaml.Node
	_, grpc := keys["grpc"]
	return grpc && node.Decode(&storage) == nil && len(storage) > 0 && storage["backends"].Kind != 0
}

// isChart reports whether there are values that only charts for Jaeger have.
func isChart(keys map[string]yaml.Node, _ []byte) bool {
	for _, key := range []string{"provisionDataStore", "userconfig", "allInOne"} {
		if _, ok := keys[key]; ok {
			return true
		}
	}
	return false
}

// isTempo reports whether there are sections for the processes of Tempo.
func isTempo(keys map[string]yaml.Node, _ []byte) bool {
	n := 0
	for _, section := range []string{"distributor", "ingester", "compactor", "querier", "query_frontend", "storage", "metrics_generator"} {
		if _, ok := keys[section]; ok {
			n++
		}
	}
	return n >= 2
}

var jaegerImage = regexp.MustCompile(`(?m)^\s*image:.*jaeger`)

// isCompose reports whether the file lists services, one of them with an image of Jaeger.
func isCompose(keys map[string]yaml.Node, text []byte) bool {
	_, ok := keys["services"]
	return ok && jaegerImage.Match(text)
}

var (
	jaeger1Flags = regexp.MustCompile(`^\s*--[a-z]`)
	jaeger1Keys  = []string{"span-storage", "span-storage.type", "es", "es.server-urls", "cassandra", "badger"}
)

// isJaeger1 reports whether the file holds flags: as on a command line, or as keys.
func isJaeger1(keys map[string]yaml.Node, text []byte) bool {
	for key := range keys {
		if slices.Contains(jaeger1Keys, key) {
			return true
		}
	}
	return keys == nil && jaeger1Flags.Match(text)
}
