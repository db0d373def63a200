// Package doctor is the command `tracing doctor`. It checks a host before the program starts, or an
// installation that runs, and says what to change.
//
// A check is a function in the table of table.go, one file per check. It reads the configuration
// through an examination and returns findings. Checks change nothing, except that they write test
// spans to a running installation and a small file, which they remove, to the data folder. Each
// check ends within a time limit.
package doctor
