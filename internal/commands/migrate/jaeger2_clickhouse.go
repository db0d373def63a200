package migrate

import "strconv"

// fromClickHouse translates the settings of a database to settings of the `clickhouse` exporter,
// which uses different tables.
func (b *backend) fromClickHouse() {
	s := b.settings
	s.rename("addresses", "endpoints")
	s.rename("dial_timeout", "connect_timeout")
	if s.has("auth") {
		user, password := s.block("auth", "basic").value("username"), s.block("auth", "basic").value("password")
		if password != nil {
			s.insertAfter("auth", "password", password)
		}
		if user != nil {
			s.insertAfter("auth", "username", user)
			s.note(changed, "username", "username and password were auth.basic")
		}
		s.remove("auth")
	}
	old, name := firstOf(s.text("database"), "jaeger"), "tracing"
	if b.archive {
		name = "tracing_archive"
	}
	s.setText("database", name)
	s.note(changed, "database", "database was %s: tables of Jaeger there have the same names and are not read; keep the old query "+
		"service until their spans have expired", old)
	b.clickHouseSchema()
	for _, key := range []string{"default_search_depth", "max_search_depth"} {
		s.drop(key, "each search has its own limit")
	}
	for _, key := range []string{"attribute_metadata_cache_ttl", "attribute_metadata_cache_max_size"} {
		s.drop(key, "conditions need no cache")
	}
	if !s.has("sending_queue") {
		s.noteAt(0, decide, "inserts should hold 10,000 spans or more: give the batch processor a min_interval and this exporter "+
			"a queue on disk, as the preset collector-clickhouse does")
	}
}

// clickHouseSchema translates the creation of tables and the retention.
func (b *backend) clickHouseSchema() {
	s := b.settings
	if s.has("create_schema") {
		create, err := strconv.ParseBool(s.text("create_schema"))
		schema := "check"
		if create {
			schema = "create"
		}
		s.insertAfter("create_schema", "schema", textNode(schema))
		if err == nil {
			s.note(changed, "schema", "schema was create_schema")
		} else {
			s.note(decide, "schema", "create_schema was neither true nor false: schema creates tables with create, and only checks them with check")
		}
		s.remove("create_schema")
	}
	switch ttl := s.text("ttl"); {
	case ttl != "":
		s.insertAfter("ttl", "retention", yamlNode("spans: 336h"))
		s.block("retention").setText("spans", ttl)
		s.note(changed, "retention", "retention.spans was ttl")
		s.remove("ttl")
	default:
		s.setNode("retention", yamlNode("spans: 0s"))
		s.block("retention").note(changed, "spans", "spans had no ttl; 0s sets no maximum age")
	}
}
