// Package metricsquery evaluates metrics queries of the search language: numbers over time that are
// calculated from spans.
//
//	metricsquery.go Query, Run: the limits, and the evaluation of an expression
//	stage.go        series of a function such as rate() from groups of the store
//	compare.go      compare() from facets of the store
//	series.go       Series, and arithmetic, comparisons, topk and bottomk
//	exemplars.go    examples of the counted spans
package metricsquery
