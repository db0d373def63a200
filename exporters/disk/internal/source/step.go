package source

import "math/bits"

// Step is a duration on a scale of four steps per octave. It is the duration d itself if d < 4, or
// else b<<2 | d>>(b-2)&3, where b is the number of the highest bit of d. Longer durations have
// higher steps.
type Step uint8

// StepOf returns the step of a duration in nanoseconds.
func StepOf(d uint64) Step {
	if d < 4 {
		return Step(d)
	}
	octave := bits.Len64(d) - 1
	return Step(octave<<2 | int(d>>(octave-2)&3))
}

// End returns the longest duration of a step, in nanoseconds.
func (s Step) End() uint64 {
	if s < 8 { // steps 4 to 7 are not used
		return uint64(s)
	}
	octave := s >> 2
	return uint64(4+s&3+1)<<(octave-2) - 1
}

// Begin returns the shortest duration of a step, in nanoseconds.
func (s Step) Begin() uint64 {
	if s < 8 { // steps 4 to 7 are not used
		return uint64(s)
	}
	return uint64(4+s&3) << (s>>2 - 2)
}
