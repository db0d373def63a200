package migrate

// fromCollector translates a Collector configuration.
func fromCollector(d *document) {
	pipelines := d.root.block("service", "pipelines")
	for _, name := range pipelines.keys() {
		switch typ := typeOf(name); typ {
		case "metrics", "logs", "profiles":
			pipelines.drop(name, "this program takes traces only")
		}
	}
}
