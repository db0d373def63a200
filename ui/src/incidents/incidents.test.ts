import { describe, expect, it } from 'vitest';
import type { AffectedService, IncidentVersion } from '../api/incidents';
import { nanos, time } from '../shell/format';
import { badQuery, explainLink, rangeOf } from './links';
import { badText, incidentText } from './words';

const start = Date.UTC(2026, 10, 22, 13, 46);
const minute = 60_000;
const at = (ms: number): string => time(ms, 'utc', start + 20 * minute, 0);
const numbers = { calls: 1200, errors: 130, p50: 20e6, p95: 300e6, p99: 400e6 };
const usual = { calls: 2000, errors: 4, p50: 20e6, p95: 100e6, p99: 120e6, quiet: 3600e9 };
const failing: AffectedService = { name: 'pay', allSpans: false, kind: 'errors', start: nanos(start), end: null, slowFrom: 0, usual, ...numbers };
const slow: AffectedService = { ...failing, kind: 'slow', slowFrom: 155e6 };
const ended = nanos(start + 10 * minute);

function version(after: number): IncidentVersion {
  return { from: '1', to: '2', at: nanos(start + after * minute), of: { calls: 1, errors: 1 }, others: { calls: 1, errors: 0 } };
}

describe('words', () => {
  const say = (s: AffectedService, v: IncidentVersion | null = null): string => incidentText(s, s.usual, at, v).replaceAll('\u202f', ' ');

  it('says what is wrong, since when, and which version came then', () => {
    expect(say(failing)).toBe('fails 10.8 % of requests, usually 0.2 %, since 13:46');
    expect(say(failing, version(-2))).toBe('fails 10.8 % of requests, usually 0.2 %, since 13:46 when version 2 appeared');
    expect(say(failing, version(-9))).toBe('fails 10.8 % of requests, usually 0.2 %, since 13:46; version 2 appeared at 13:37');
    expect(say(slow)).toBe('is slow: p95 300 ms, usually 100 ms, since 13:46');
    expect(say({ ...failing, start: null, usual: null })).toBe('fails 10.8 % of requests');
  });
  it('says when it ended', () => {
    expect(say({ ...failing, end: ended })).toBe('failed 10.8 % of requests, usually 0.2 %, ended 13:56 after 10 min');
    expect(say({ ...failing, end: ended }, version(0))).toBe('failed 10.8 % of requests, usually 0.2 %, ended 13:56 after 10 min; it began when version 2 appeared');
    expect(say({ ...slow, end: ended })).toBe('was slow: p95 300 ms, usually 100 ms, ended 13:56 after 10 min');
  });
  it('says what is bad in a list', () => {
    expect([badText(failing), badText(slow)].map((s) => s.replaceAll('\u202f', ' '))).toEqual(['10.8 %', 'p95 300 ms']);
  });
});

describe('links', () => {
  const params = (s: AffectedService): Record<string, string> => Object.fromEntries(new URL(explainLink(s, 'now'), 'http://localhost').searchParams);

  it('explains the bad requests of the time of the incident', () => {
    const requests = '{ service = "pay" && (kind = server || kind = consumer) }';
    expect(params(failing)).toEqual({ q: requests, from: '2026-11-22T13:46:00.000Z', of: 'spans', sel: 'errors', tab: 'explain' });
    expect(params({ ...slow, end: ended })).toEqual({
      q: requests, from: '2026-11-22T13:16:00.000Z', to: '2026-11-22T13:56:00.000Z', of: 'spans', tab: 'explain', sel: `${start},${start + 10 * minute},155000000,4000000000`,
    });
    expect(params({ ...failing, errors: 1100, end: ended })).toMatchObject({ from: '2026-11-22T13:16:00.000Z', sel: 'errors' });
    expect(params({ ...failing, allSpans: true }).q).toBe('{ service = "pay" }');
  });
  it('ends where the page ends', () => {
    expect(rangeOf(failing, '2026-11-22T14:00:00.000Z').to).toBe('2026-11-22T14:00:00.000Z');
    expect(rangeOf({ ...failing, end: ended }, 'now').to).toBe('2026-11-22T13:56:00.000Z');
  });
  it('finds the bad requests', () => {
    expect(badQuery(failing)).toBe('{ service = "pay" && (kind = server || kind = consumer) && error }');
    expect(badQuery(slow)).toBe('{ service = "pay" && (kind = server || kind = consumer) && duration >= 155ms }');
  });
});
