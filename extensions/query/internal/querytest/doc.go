// Package querytest has what the tests of the query APIs share: stores, traces, and golden files of
// answers.
package querytest
