package main

import "testing"

func TestInsertHead(t *testing.T) {
	for statement, want := range map[string][2]string{
		"INSERT INTO t FORMAT Native":                               {"INSERT INTO t", "Native"},
		"-- c\n/* FORMAT x */ insert  into `a b`.t (k, v) values ;": {"insert  into `a b`.t (k, v)", "Values"},
		"INSERT INTO t SETTINGS async_insert=1 FORMAT JSONEachRow":  {"INSERT INTO t SETTINGS async_insert=1", "JSONEachRow"},
		"INSERT INTO t SELECT 1":                                    {},
		"INSERT INTO t VALUES (1)":                                  {},
		"SELECT 'INSERT INTO t FORMAT Native'":                      {},
		"CREATE MATERIALIZED VIEW m TO v AS SELECT * FROM t":        {},
		"":                                       {},
		"INSERT INTO t (`values`) FORMAT Native": {"INSERT INTO t (`values`)", "Native"},
		"INSERT INTO t FROM INFILE 'x' FORMAT Native SETTINGS a = 'b'": {},
	} {
		head, format := insertHead(statement)
		if got := [2]string{head, format}; got != want {
			t.Errorf("%s: %q, want %q", statement, got, want)
		}
	}
}

func TestInsertTarget(t *testing.T) {
	for head, want := range map[string][2]string{
		"INSERT INTO t":                         {"t", ""},
		"INSERT INTO a.`b c` (`x(`, y.z)":       {"a.`b c`", "(`x(`, y.z)"},
		"INSERT INTO TABLE `d`.`t` (a)":         {"`d`.`t`", "(a)"},
		"INSERT INTO t (a) SETTINGS x = max(1)": {"t", "(a)"},
	} {
		m := insertTarget.FindStringSubmatch(head)
		if m == nil || m[1] != want[0] || m[2] != want[1] {
			t.Errorf("%s: %q, want %q", head, m, want)
		}
	}
}

func TestOutputFormat(t *testing.T) {
	for statement, want := range map[string]string{
		"SELECT 1":             "Native",
		"SELECT 1 FORMAT JSON": "JSON",
		"SELECT 1 format TSV SETTINGS max_threads = 1": "TSV",
		"SELECT 'FORMAT JSON'":                         "Native",
	} {
		if got := outputFormat(statement, "Native"); got != want {
			t.Errorf("%s: %s, want %s", statement, got, want)
		}
	}
}
