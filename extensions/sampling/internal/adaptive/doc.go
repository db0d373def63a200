// Package adaptive calculates sampling probabilities so that each operation has a target number of
// sampled traces per second.
//
// Root spans record the probability p with which they were sampled, so each stands for 1/p traces.
// The counts therefore give an estimate of the rate of new traces, whatever probability clients
// used at the time. Delays of the data or of clients do not cause oscillation, because a
// calculation never attributes the effect of an older probability to the newest one.
//
// Files: counter.go counts the traces of one collector, history.go joins the counts of all
// collectors, window.go selects the intervals with the current rate, calculate.go decides.
package adaptive
