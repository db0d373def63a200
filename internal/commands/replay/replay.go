package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// replay sets the offsets of a consumer group back to a time.
type replay struct {
	topic, group  string
	from          time.Time
	dryRun        bool
	limits        []string // what counts twice
	out, messages io.Writer
}

// partition is what becomes of one partition.
type partition struct {
	id        int32
	start     int64 // first offset that is still in the topic
	committed int64 // -1: none
	target    int64 // first offset at or after the time
	end       int64
}

// again returns the number of records that the group rereads. Offsets are never moved forward:
// records in between would not be stored.
func (p *partition) again() int64 {
	if p.committed < 0 {
		return 0
	}
	return max(0, p.committed-p.target)
}

func (r *replay) run(ctx context.Context, admin *kadm.Client) error {
	if !r.dryRun {
		if err := r.checkMembers(ctx, admin); err != nil {
			return err
		}
	}
	all, err := r.partitions(ctx, admin)
	if err != nil {
		return err
	}
	total, err := r.show(all)
	if err != nil {
		return err
	}
	if total == 0 {
		_, err := fmt.Fprintf(r.out, "group %s has read nothing that was written since %s\n", r.group, date(r.from))
		return err
	}
	for _, limit := range r.limits {
		fmt.Fprintf(r.messages, "warning: %s\n", limit)
	}
	if r.dryRun {
		_, err := fmt.Fprintln(r.out, "nothing was changed because of --dry-run")
		return err
	}
	if err := r.commit(ctx, admin, all); err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.out, "set the offsets of group %s; start the ingesters to reread %d records\n", r.group, total)
	return err
}

// checkMembers reports an error while members of the group run: they would overwrite the offsets.
func (r *replay) checkMembers(ctx context.Context, admin *kadm.Client) error {
	groups, err := admin.DescribeGroups(ctx, r.group)
	if err != nil {
		return fmt.Errorf("describing group %s: %w", r.group, err)
	}
	g := groups[r.group]
	if errors.Is(g.Err, kerr.GroupIDNotFound) {
		return nil
	}
	if g.Err != nil {
		return fmt.Errorf("describing group %s: %w", r.group, g.Err)
	}
	if len(g.Members) == 0 {
		return nil
	}
	var names []string
	for _, m := range g.Members {
		names = append(names, fmt.Sprintf("%s at %s", m.ClientID, strings.TrimPrefix(m.ClientHost, "/")))
	}
	return fmt.Errorf("group %s has active members (%s); stop the ingesters first, and wait for session_timeout "+
		"if they have a group_instance_id", r.group, strings.Join(names, ", "))
}

// partitions returns the partitions of the topic by number.
func (r *replay) partitions(ctx context.Context, admin *kadm.Client) ([]partition, error) {
	committed, err := admin.FetchOffsets(ctx, r.group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, fmt.Errorf("reading the offsets of group %s: %w", r.group, err)
	}
	var lists [3]kadm.ListedOffsets
	lists[0], err = admin.ListStartOffsets(ctx, r.topic)
	if err == nil {
		lists[1], err = admin.ListOffsetsAfterMilli(ctx, r.from.UnixMilli(), r.topic)
	}
	if err == nil {
		lists[2], err = admin.ListEndOffsets(ctx, r.topic)
	}
	for _, list := range lists {
		err = errors.Join(err, list.Error())
	}
	if err != nil {
		return nil, fmt.Errorf("reading the offsets of topic %s: %w", r.topic, err)
	}
	at := func(list kadm.ListedOffsets, id int32) int64 {
		if o, ok := list.Lookup(r.topic, id); ok {
			return o.Offset
		}
		return -1
	}
	var all []partition
	for id := range lists[1][r.topic] {
		p := partition{id: id, start: at(lists[0], id), committed: -1, target: at(lists[1], id), end: at(lists[2], id)}
		if o, ok := committed.Lookup(r.topic, id); ok {
			if o.Err != nil {
				return nil, fmt.Errorf("reading the offset of partition %d of group %s: %w", id, r.group, o.Err)
			}
			p.committed = o.At
		}
		if p.target < 0 { // no record since then
			p.target = p.end
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("topic %s has no partitions; check the topic and the brokers of the receiver", r.topic)
	}
	slices.SortFunc(all, func(a, b partition) int { return int(a.id) - int(b.id) })
	return all, nil
}

// show prints the partitions, and returns the number of records to reread.
func (r *replay) show(all []partition) (total int64, err error) {
	fmt.Fprintf(r.out, "topic %s, group %s, from %s\n\n", r.topic, r.group, date(r.from))
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "partition\tcommitted\toffset of the time\tread again\tnot read yet\t")
	var deleted []string
	for i := range all {
		p := &all[i]
		committed := "none"
		if p.committed >= 0 {
			committed = fmt.Sprint(p.committed)
		}
		total += p.again()
		if p.target == p.start && p.start > 0 {
			deleted = append(deleted, fmt.Sprint(p.id))
		}
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%d\t\n", p.id, committed, p.target, p.again(), p.end-max(p.committed, p.start))
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	fmt.Fprintln(r.out)
	if len(deleted) > 0 {
		fmt.Fprintf(r.messages, "warning: topic %s no longer has older records in the partitions %s: records since %s may have been deleted\n",
			r.topic, strings.Join(deleted, ", "), date(r.from))
	}
	return total, nil
}

// commit sets the offsets of the partitions with records to reread.
func (r *replay) commit(ctx context.Context, admin *kadm.Client, all []partition) error {
	offsets := kadm.Offsets{}
	for _, p := range all {
		if p.again() > 0 {
			offsets.Add(kadm.Offset{Topic: r.topic, Partition: p.id, At: p.target, LeaderEpoch: -1})
		}
	}
	done, err := admin.CommitOffsets(ctx, r.group, offsets)
	if err == nil {
		err = done.Error()
	}
	if err != nil {
		return fmt.Errorf("setting the offsets of group %s: %w; rerun the command, with --dry-run to see the state", r.group, err)
	}
	return nil
}

func date(t time.Time) string { return t.UTC().Format(time.RFC3339) }
