// Package adaptive finds the probabilities with which clients sample so many traces per second of each operation as are wanted.
//
// Root spans say with which probability p they were sampled, so each stands for 1/p traces. What was seen is therefore an estimate of how
// many traces began, whatever probability clients had at the time, and neither the delay of the data nor that of the clients leads to
// oscillation: a calculation never takes the effect of an older probability for that of the newest.
//
// Files: counter.go counts what a collector sees, history.go joins what all saw, window.go says how much of the past is like the present,
// calculate.go decides.
package adaptive
