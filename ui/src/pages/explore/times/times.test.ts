import { describe, expect, it } from 'vitest';
import type { Groups } from '../../../api/groups';
import { changesOf, earlierName, earlierPeriod } from './model';
import { sentenceOf } from './times';

const hour = 3_600_000;
const now = { from: Date.UTC(2026, 10, 28, 12), to: Date.UTC(2026, 10, 28, 13) };

/** Groups by service: name, calls, errors, p95 in ms. */
const groups = (...rows: [string, number, number, number][]): Groups => ({
  of: 'spans', by: ['service'], spans: 0, errors: 0, share: 1, scanned: 0, estimatedSpans: 0, estimatedErrors: 0, distinct: rows.length, other: 0, all: { p50: 1, p95: 1, p99: 1, time: 1 },
  groups: { values: [rows.map((r) => r[0])], where: rows.map((r) => `service = "${r[0]}"`), count: rows.map((r) => r[1]), errors: rows.map((r) => r[2]), p50: rows.map(() => 1e6), p95: rows.map((r) => r[3] * 1e6), p99: rows.map(() => 1e9), time: rows.map(() => 1) },
});

describe('two times', () => {
  it('names the earlier one', () => {
    const from = (against: string): string => new Date(earlierPeriod(against, now).from).toISOString();
    expect(['', 'day', 'week', 'before', 'nonsense'].map(from)).toEqual(['2026-11-27T12:00:00.000Z', '2026-11-27T12:00:00.000Z', '2026-11-21T12:00:00.000Z', '2026-11-28T11:00:00.000Z', '2026-11-27T12:00:00.000Z']);
    expect(earlierPeriod('2026-11-01T00:00:00Z..2026-11-02T00:00:00Z', now)).toEqual({ from: Date.UTC(2026, 10, 1), to: Date.UTC(2026, 10, 2) });
    expect(from('2026-11-02T00:00:00Z..2026-11-01T00:00:00Z')).toBe('2026-11-27T12:00:00.000Z');
    expect([earlierName(''), earlierName('before'), earlierName('a..b')]).toEqual(['day', 'before', null]);
  });

  it('puts what differs most first, and says how', () => {
    const then = groups(['pay', 1000, 2, 100], ['cart', 1000, 0, 100], ['web', 1000, 0, 100], ['old', 500, 0, 10], ['rare', 3, 0, 10]);
    const after = groups(['web', 1010, 1, 105], ['pay', 1000, 200, 100], ['cart', 1000, 0, 400], ['next', 500, 0, 10], ['rare', 3, 1, 900]);
    const list = changesOf(after, then, now, earlierPeriod('', now));
    expect(list.map((c) => [c.values[0], c.kinds.join(' ')])).toEqual([['next', 'new'], ['old', 'gone'], ['pay', 'failing'], ['cart', 'slower'], ['web', ''], ['rare', '']]);
  });

  it('compares rates, not counts, of times of different length', () => {
    const [change] = changesOf(groups(['a', 100, 0, 10]), groups(['a', 2400, 0, 10]), now, { from: now.from - 24 * hour, to: now.from });
    expect(change.kinds).toEqual([]);
  });

  it('calls a group new or gone only if the other answer would have had it', () => {
    const kinds = (after: Groups, then: Groups, a = now): string[] => changesOf(after, then, a, earlierPeriod('', now)).map((c) => `${c.values[0]} ${c.kinds.join(' ')}`.trim());
    const [both, next] = [groups(['a', 50, 0, 10], ['next', 40, 0, 10]), groups(['a', 50, 0, 10])];
    expect(kinds(both, next)).toEqual(['next new', 'a']);
    expect(kinds(next, both)).toEqual(['next gone', 'a']);
    const cut = [{ ...next, other: 1 }, { ...next, distinct: 2 }];
    for (const other of cut) expect([kinds(both, other), kinds(other, both)]).toEqual([['a', 'next'], ['a', 'next']]);
    expect(kinds(both, groups())).toEqual(['a', 'next']);
    expect(kinds(groups(['a', 50, 0, 10], ['next', 19, 0, 10]), next)).toEqual(['a', 'next']);
    expect(kinds(both, { ...next, share: 0.1 })).toEqual(['a fewer', 'next']);
    expect(kinds(both, next, { from: now.from - 9 * hour, to: now.to })).toEqual(['a fewer', 'next']);
  });

  it('says when one time has no spans', () => {
    const some = groups(['a', 50, 0, 10]);
    const sentence = (after: Groups, then: Groups): string => sentenceOf(changesOf(after, then, now, earlierPeriod('', now)), ['service'], after, then);
    expect([sentence(some, groups()), sentence(groups(), some)]).toEqual(['No span matches in the earlier time.', 'No span matches in this time range.']);
    expect(sentence(some, some)).toBe('1 service: nothing differs clearly');
  });

  it('needs enough examined spans, and failed ones, for a difference', () => {
    const kinds = (after: Groups, then: Groups): string => changesOf(after, then, now, earlierPeriod('', now))[0].kinds.join(' ');
    const none = groups(['a', 1000, 0, 10]);
    expect(kinds(groups(['a', 1000, 20, 10]), none)).toBe('failing');
    expect(kinds(none, groups(['a', 1000, 20, 10]))).toBe('recovered');
    expect(kinds(groups(['a', 20, 1, 10]), { ...none, groups: { ...none.groups, count: [20_000] } })).toBe('fewer');
    expect(kinds(groups(['a', 19, 10, 900]), none)).toBe('');
    const sampled = (errors: number): Groups => ({ ...groups(['a', 100, errors, 10]), share: 0.01 });
    expect(kinds(sampled(9), sampled(6))).toBe(''); // as 900 and 600 of 10,000 it would be clear
    expect(kinds({ ...groups(['a', 10, 8, 900]), share: 0.01 }, sampled(0))).toBe('');
  });
});
