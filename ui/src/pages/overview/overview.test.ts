import { describe, expect, it } from 'vitest';
import type { Incident, Red, Services, Usual } from '../../api/types';
import { nanos, time } from '../../shell/format';
import type { AffectedService, Incidents } from '../../api/incidents';
import { errorShare } from '../../incidents/words';
import { errorShares, inOrderOf, isCompared, judge, rates, silentSince, slowdown } from './health';
import { queryOf } from './lead';
import { overviewSentence } from './sentence';

const start = Date.UTC(2026, 10, 22, 13, 42);
const minute = 60_000;

function red(calls: number, errors: number, p95 = 100e6): Red {
  return { calls, errors, p50: p95 / 4, p95, p99: p95 * 2 };
}

interface Spec { name: string; now: Red; usual?: Red | null; incident?: Incident; inferred?: boolean }

/** An incident that goes on since a minute of the range, or ended. */
function incident(kind: Incident['kind'], numbers: Red, from: number | null, to: number | null = null): Incident {
  const at = (m: number | null): string | null => (m === null ? null : nanos(start + m * minute));
  return { kind, start: at(from), end: at(to), slowFrom: kind === 'slow' ? 150e6 : 0, ...numbers };
}

function quiet(r: Red): Usual {
  return { ...r, quiet: 600e9 };
}

/** Ten steps of a minute. */
function answer(...specs: Spec[]): Services {
  const series = (s: Spec) => ({
    name: s.name, inferred: s.inferred ?? false, summary: s.now, usual: s.usual === null ? null : quiet(s.usual ?? s.now), incident: s.incident ?? null, since: null,
    calls: Array(10).fill(s.now.calls / 10), errors: Array(10).fill(s.now.errors / 10),
    p50: Array(10).fill(s.now.p50), p95: Array(10).fill(s.now.p95), p99: Array(10).fill(s.now.p99),
  });
  return {
    start: nanos(start), end: nanos(start + 10 * minute), usualStart: nanos(start - 10 * minute), step: minute * 1e6, points: 10,
    total: series({ name: '', now: red(1, 0) }), services: specs.map(series),
  };
}

const plain = (s: string): string => s.replaceAll('\u202f', ' ');
function say(a: Services): { text: string; details: string[] } {
  const s = overviewSentence(judge(a), { comparable: isCompared(a), errorShare: errorShare(a.total.summary), at: (ms) => time(ms, 'utc', start + 10 * minute, 0), silentSince: silentSince(a.total, a) });
  return { text: s.text, details: s.details.map((d) => `${d.service.name} ${plain(d.text)}`) };
}

describe('health', () => {
  it('compares durations only with enough calls', () => {
    expect(slowdown(red(100, 0, 300), red(100, 0, 100))).toBe(3);
    expect(slowdown(red(10, 0, 300), red(100, 0, 100))).toBeNull();
    expect(slowdown({ ...red(100, 0), p95: null }, red(100, 0))).toBeNull();
  });
  it('orders failing, silent, slow, then by calls, inferred last', () => {
    const a = answer(
      { name: 'db', now: red(90_000, 0), inferred: true }, { name: 'small', now: red(100, 0) }, { name: 'big', now: red(5000, 0) },
      { name: 'slow', now: red(100, 0, 200e6), usual: red(100, 0, 100e6), incident: incident('slow', red(100, 0, 200e6), 0) },
      { name: 'slower', now: red(100, 0, 900e6), usual: red(100, 0, 100e6), incident: incident('slow', red(100, 0, 900e6), 0) },
      { name: 'over', now: red(100, 9), incident: incident('errors', red(20, 9), 1, 3) },
      { name: 'gone', now: red(0, 0), usual: red(500, 0) }, { name: 'bad', now: red(100, 20), usual: red(100, 0), incident: incident('errors', red(100, 20), null) },
      { name: 'worse', now: red(1000, 200), usual: red(1000, 0), incident: incident('errors', red(900, 200), 1) },
    );
    expect(judge(a).map((s) => s.name)).toEqual(['worse', 'bad', 'gone', 'slower', 'slow', 'over', 'big', 'small', 'db']);
  });
  it('orders equal services by name, whatever the order of the answer', () => {
    const bad = { now: red(100, 20), usual: red(100, 0), incident: incident('errors', red(100, 20), 1) };
    const slow = { now: red(100, 0, 900e6), usual: red(100, 0), incident: incident('slow', red(100, 0, 900e6), 1) };
    const specs = [{ name: 'd', ...slow }, { name: 'b', ...bad }, { name: 'c', ...slow }, { name: 'a', ...bad }];
    for (const order of [specs, specs.toReversed()]) expect(judge(answer(...order)).map((s) => s.name)).toEqual(['a', 'b', 'c', 'd']);
  });
  it('leads to the requests that the sentence is of', () => {
    const query = (kind: Incident['kind'], to: number | null): string => queryOf(judge(answer({ name: 'a', now: red(100, 9), incident: incident(kind, red(50, 9), 2, to) }))[0]);
    expect([query('errors', null), query('errors', 6)]).toEqual(['{ service = "a" && error }', '{ service = "a" && error }']);
    expect([query('slow', null), query('slow', 6)]).toEqual(['{ service = "a" }', '{ service = "a" }']);
  });
  it('orders by errors, then by duration, if nothing can be compared', () => {
    const usual = null;
    const a = answer(
      { name: 'busy', now: red(9000, 0), usual }, { name: 'slow', now: red(100, 0, 900e6), usual }, { name: 'rare', now: red(2, 1, 5e9), usual },
      { name: 'some', now: red(1000, 10), usual }, { name: 'more', now: red(100, 8), usual }, { name: 'db', now: red(100, 20), usual, inferred: true },
    );
    expect(judge(a).map((s) => s.name)).toEqual(['rare', 'db', 'more', 'some', 'slow', 'busy']);
  });
  it('puts the services of an incident into its order', () => {
    const failing = { now: red(1000, 200), usual: red(1000, 0), incident: incident('errors', red(900, 200), 1) };
    const a = answer({ name: 'front', ...failing, incident: incident('errors', red(9000, 900), 1) }, { name: 'pay', ...failing }, { name: 'db', now: red(10, 0) });
    const affected = (name: string): AffectedService => ({ name, allSpans: false, ...failing.incident, usual: null });
    const incidents: Incidents = { omitted: 0, incidents: [{ source: affected('pay'), reached: [affected('front')], version: null, roots: null, errors: [], examined: 0, traceID: '', spanID: '' }] };
    expect(inOrderOf(judge(a), undefined).map((s) => s.name)).toEqual(['front', 'pay', 'db']);
    expect(inOrderOf(judge(a), incidents).map((s) => s.name)).toEqual(['pay', 'front', 'db']);
  });
  it('calculates rates of steps, also of the last one', () => {
    const a = { start: nanos(start), end: nanos(start + 2.5 * minute), step: minute * 1e6 };
    expect(rates([60, 120, 60], a)).toEqual([1, 2, 2]);
    expect(rates([60, 120, 1], { ...a, end: nanos(start + 2.1 * minute) })).toEqual([1, 2, null]);
    expect(errorShares({ calls: [0, 10], errors: [0, 1] })).toEqual([null, 0.1]);
  });
});

describe('sentence', () => {
  const failing: Spec = { name: 'payment', now: red(2070, 132), usual: red(2000, 4), incident: incident('errors', red(1200, 130), 4) };

  it('names what is broken, and since when', () => {
    const a = answer(failing, { name: 'cart', now: red(100, 0, 240e6), usual: red(100, 0), incident: incident('slow', red(50, 0, 300e6), 5) }, { name: 'geo', now: red(100, 0) });
    expect(say(a)).toEqual({
      text: '1 of 3 services is failing, 1 is slower than usual',
      details: ['payment fails 10.8 % of requests, usually 0.2 %, since 13:46', 'cart is slow: p95 300 ms, usually 100 ms, since 13:47'],
    });
  });
  it('says when an incident ended', () => {
    const over: Spec = { ...failing, incident: incident('errors', red(400, 130), 2, 6) };
    expect(say(answer(over, { name: 'geo', now: red(100, 0) }))).toEqual({
      text: 'Nothing unusual now, 1 of 2 services has recovered', details: ['payment failed 32.5 % of requests, usually 0.2 %, ended 13:48 after 4 min'],
    });
  });
  it('names the day of times before the last', () => {
    const day = 24 * 60;
    const [longAgo, over] = [{ ...failing, incident: incident('errors', red(400, 130), -day) }, { ...failing, incident: incident('errors', red(400, 130), -day - 6, -day) }];
    expect(say(answer(longAgo)).details).toEqual(['payment fails 32.5 % of requests, usually 0.2 %, since 2026-11-21 13:42']);
    expect(say(answer(over)).details).toEqual(['payment failed 32.5 % of requests, usually 0.2 %, ended 2026-11-21 13:42 after 6 min']);
  });
  it('counts in the plural', () => {
    const gone: Spec = { name: 'gone', now: red(0, 0), usual: red(500, 0) };
    expect(say(answer(failing, { ...failing, name: 'b' }, gone)).text).toBe('2 of 3 services are failing, 1 no longer gets requests');
    expect(say(answer(failing)).text).toBe('payment is failing');
    expect(say(answer(gone, { name: 'a', now: red(10, 0) })).text).toBe('1 of 2 services no longer gets requests');
  });
  it('finds requests that stopped within the range', () => {
    const a = answer({ name: 'a', now: red(100, 0) }, { name: 'b', now: red(100, 0) });
    a.services[0].calls = [20, 20, 20, 20, 20, 0, 0, 0, 0, 0];
    expect(say(a)).toEqual({ text: '1 of 2 services no longer gets requests', details: ['a has had no requests since 13:47'] });
    a.total.calls = a.services[1].calls = a.services[0].calls;
    expect(say(a)).toEqual({ text: 'No requests since 13:47', details: [] });
    expect(silentSince({ calls: [1, 1, 1, 1, 1, 0, 0, 0, 0, 0] }, a)).toBeNull();
    expect(silentSince({ calls: [20, 20, 20, 20, 20, 20, 0, 0, 0, 0] }, a)).toBeNull();
  });
  it('says that nothing is unusual, or that nothing can be compared', () => {
    expect(say(answer({ name: 'a', now: red(100, 5) }, { name: 'b', now: red(100, 5) }))).toEqual({ text: 'Nothing unusual in 2 services', details: [] });
    const young = { ...answer({ name: 'a', now: red(100, 5), usual: null }), usualStart: nanos(start) };
    young.total.summary = red(1000, 6);
    expect(plain(say(young).text)).toBe('0.6 % of the requests to a failed');
    expect(say({ ...answer({ name: 'a', now: red(100, 0), usual: null }), usualStart: nanos(start) }).text).toBe('No errors in a');
    expect(say(answer()).text).toBe('No requests in this time range');
  });
});
