package migrate

// fromJaeger2 translates what Jaeger 2 adds to a Collector configuration.
func fromJaeger2(d *document) {
	for _, id := range d.componentsOf(extensions, "jaeger_storage") {
		d.dropComponent(extensions, id, "stores are exporters")
	}
}
