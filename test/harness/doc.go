// Package harness holds what the tests of the whole program share. It starts the program ([Run]),
// sends spans, and reads the query API, the metrics and the log. Package inprocess starts the
// program inside the test process; it is apart because a test that imports it links the whole
// program.
//
// Tests below the folder test use the program through these packages only, so a change of the API
// that starts it has to be made here once. A package that uses [Binary] passes [Cleanup] to
// goleak.Cleanup in its TestMain.
package harness
