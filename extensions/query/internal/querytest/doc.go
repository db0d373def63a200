// Package querytest contains what the tests of the query APIs share: stores, traces, and golden
// files of responses.
package querytest
