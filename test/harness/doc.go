// Package harness holds what the tests of the whole program share. It starts the program inside the
// test process ([Start]) or as a process of its own ([Run]), sends spans, and reads the query API,
// the metrics and the log.
//
// Tests below the folder test use the program through this package only, so a change of the API
// that starts it has to be made here once. A package that uses [Binary] passes [Cleanup] to
// goleak.Cleanup in its TestMain.
package harness
