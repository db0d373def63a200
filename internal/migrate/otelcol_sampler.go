package migrate

// samplerMode writes down the Collector's default mode of probabilistic_sampler, so that the same
// traces are sampled here.
func (c *collector) samplerMode() {
	for _, id := range c.componentsOf(processors, "probabilistic_sampler") {
		b := c.root.ensure(processors, id)
		if b.has("mode") {
			continue
		}
		b.setText("mode", "hash_seed")
		b.note(changed, "mode", "hash_seed is the default of the Collector; the default here is equalizing")
	}
}
