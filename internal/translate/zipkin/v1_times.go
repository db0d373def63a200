package zipkin

// repairTimes sets missing times from the annotations.
func (s *v1Span) repairTimes() {
	sent, isSent := s.when(clientSend)
	received, isReceived := s.when(serverReceive)
	switch {
	case s.hasTimestamp:
	case isSent:
		s.timestamp, s.hasTimestamp = sent, true
	case isReceived && !s.hasParent:
		s.timestamp, s.hasTimestamp = received, true
	}
	switch {
	case !s.hasDuration:
		s.repairDuration()
	case s.duration < 0:
		s.duration = 1
	}
	if s.timestamp != 0 {
		return
	}
	answer := clientReceive
	switch {
	case isSent:
		s.timestamp = sent
	case isReceived:
		s.timestamp, answer = received, serverSend
	}
	if end, ok := s.when(answer); ok && s.duration == 0 {
		s.duration = max(end-s.timestamp, 0)
	}
}

// repairDuration sets the duration to the time between the first and the last annotation, at least
// 1 microsecond.
func (s *v1Span) repairDuration() {
	s.duration = 1
	if len(s.annotations) < 2 {
		return
	}
	first, last := s.annotations[0].time, s.annotations[len(s.annotations)-1].time
	if at, ok := s.when(clientSend); ok {
		first = at
	}
	if at, ok := s.when(clientReceive); ok {
		last = at
	}
	if first >= last || last-first < 0 {
		return
	}
	s.duration = last - first
	if !s.hasTimestamp {
		s.timestamp, s.hasTimestamp = first, true
	}
}
