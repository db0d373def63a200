package wal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	suffix      = ".log"
	sparePrefix = "spare-"
)

// partName is a parsed name of a part file; size is the size of the file when it was listed.
type partName struct {
	epoch uint64
	n     int
	size  int64
}

func (p partName) String() string { return fmt.Sprintf("%016x-%04x%s", p.epoch, p.n, suffix) }

func spareName(n int) string { return sparePrefix + strconv.Itoa(n) + suffix }

// listing is the content of a directory: parts by epoch and number, and the numbers of the spares.
type listing struct {
	parts  []partName
	spares []int
	bytes  int64
}

// of returns the parts of one log, in order: names sort by epoch and number, and directory entries
// are sorted.
func (l *listing) of(epoch uint64) []partName {
	var parts []partName
	for _, p := range l.parts {
		if p.epoch == epoch {
			parts = append(parts, p)
		}
	}
	return parts
}

func (l *listing) freeSpare() int {
	n := 0
	for slices.Contains(l.spares, n) {
		n++
	}
	return n
}

// parsePartName accepts exactly the names that partName.String returns.
func parsePartName(name string) (partName, bool) {
	stem, ok := strings.CutSuffix(name, suffix)
	epochDigits, partDigits, ok2 := strings.Cut(stem, "-")
	if !ok || !ok2 {
		return partName{}, false
	}
	epoch, err1 := strconv.ParseUint(epochDigits, 16, 64)
	n, err2 := strconv.ParseUint(partDigits, 16, 16)
	p := partName{epoch: epoch, n: int(n)}
	return p, err1 == nil && err2 == nil && p.String() == name
}

// ParseName returns the epoch of the log that a file with the given name is a part of.
func ParseName(name string) (epoch uint64, ok bool) {
	p, ok := parsePartName(name)
	return p.epoch, ok
}

func parseSpareName(name string) (int, bool) {
	stem, ok := strings.CutPrefix(strings.TrimSuffix(name, suffix), sparePrefix)
	n, err := strconv.Atoi(stem)
	return n, ok && err == nil && n >= 0 && spareName(n) == name
}
