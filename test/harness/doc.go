// Package harness is what the tests below test share: it builds the program once, starts it in a process of its own or in the
// test's, sends spans to it, and reads its API, metrics and log.
package harness
