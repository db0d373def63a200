package segment

import (
	"encoding/binary"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

var _ source.Statistics = (*Segment)(nil)

// series is the section of series, which is kept: who draws rates asks for them every few seconds.
type series struct {
	stats  *stats.SeriesStats
	memory int64
}

// Series implements source.Statistics.
func (s *Segment) Series() (*stats.SeriesStats, error) {
	s.cache.use(s)
	v, err := s.series.get(func() (*series, error) {
		raw, err := s.section(kindSeries, maxSection)
		if err != nil {
			return nil, withoutRows(err)
		}
		decoded, err := stats.DecodeSeries(raw)
		if err != nil {
			return nil, withoutRows(s.damage(kindSeries.String(), err))
		}
		return &series{decoded, int64(len(raw)) + decoded.Memory()}, nil
	}, s.keep)
	if err != nil {
		return nil, err
	}
	return v.stats, nil
}

// TraceBlocks implements source.Statistics. It reads each page of the trace index once, however many traces there are.
func (s *Segment) TraceBlocks(tenant string, ids []otlpdata.TraceID) ([]int, error) {
	list, err := s.loadPages()
	if err != nil {
		return nil, err
	}
	hashes := make([]uint64, len(ids))
	for i, id := range ids {
		hashes[i] = traceHash(tenant, id)
	}
	slices.Sort(hashes)
	found := make([]bool, s.info.Blocks)
	for i := range list {
		from, _ := slices.BinarySearch(hashes, list[i].first)
		// Equal hashes may go over the end of a page.
		if from == len(hashes) || i+1 < len(list) && hashes[from] > list[i+1].first {
			continue
		}
		if err := s.mark(found, &list[i], hashes[from:]); err != nil {
			return nil, err
		}
	}
	var out []int
	for number, is := range found {
		if is {
			out = append(out, number)
		}
	}
	return out, nil
}

// mark notes the blocks that a page has for hashes, which ascend and do not lie before the page.
func (s *Segment) mark(found []bool, p *indexPage, hashes []uint64) error {
	page := s.buffer(p.length)
	defer s.release(page)
	if err := s.readAt(*page, s.dir[kindIndex].offset+p.offset); err != nil {
		return err
	}
	b := (*page)[4:]
	if checksum(b) != binary.LittleEndian.Uint32(*page) {
		return errChecksum
	}
	at := p.first
	for i := 0; i < len(b) && len(hashes) > 0; {
		step, number, next := postingAt(b, i)
		if i = next; number >= uint64(len(found)) || i > len(b) {
			return errPosting
		}
		at += step
		for len(hashes) > 0 && hashes[0] < at {
			hashes = hashes[1:]
		}
		if len(hashes) > 0 && hashes[0] == at {
			found[number] = true
		}
	}
	return nil
}
