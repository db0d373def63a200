import { describe, expect, it } from 'vitest';
import type { Change, Red, Services } from '../../api/types';
import { nanos } from '../../shell/format';
import { errorShare, errorShares, isFailing, judge, periods, rates, silentSince, slowdown } from './health';
import { overviewSentence } from './sentence';

const start = Date.UTC(2026, 10, 22, 13, 42);
const minute = 60_000;

function red(calls: number, errors: number, p95 = 100e6): Red {
  return { calls, errors, p50: p95 / 4, p95, p99: p95 * 2 };
}

interface Spec { name: string; now: Red; usual?: Red | null; errors?: number[]; inferred?: boolean }

/** Ten steps of a minute. */
function answer(...specs: Spec[]): Services {
  const series = (s: Spec) => ({
    name: s.name, inferred: s.inferred ?? false, summary: s.now, usual: s.usual === undefined ? { ...s.now } : s.usual,
    calls: Array(10).fill(s.now.calls / 10), errors: s.errors ?? Array(10).fill(s.now.errors / 10),
    p50: Array(10).fill(s.now.p50), p95: Array(10).fill(s.now.p95), p99: Array(10).fill(s.now.p99),
  });
  return {
    start: nanos(start), end: nanos(start + 10 * minute), usualStart: nanos(start - 10 * minute), step: minute * 1e6, points: 10,
    total: series({ name: '', now: red(1, 0) }), services: specs.map(series),
  };
}

const plain = (s: string): string => s.replaceAll('\u202f', ' ');
function say(a: Services, changes: Change[] = []): { text: string; details: string[] } {
  const p = periods(a, '');
  const s = overviewSentence(judge(a, p), { comparable: p.usual >= p.range * 0.2, changes, errorShare: errorShare(a.total.summary), period: 'the last 10 minutes', zone: 'utc', silentSince: silentSince(a.total, a) });
  return { text: s.text, details: s.details.map((d) => `${d.service.name} ${plain(d.text)}`) };
}

describe('health', () => {
  it('finds more errors than usual beyond chance', () => {
    expect(isFailing(red(2070, 132), red(2000, 4))).toBe(true);
    expect(isFailing(red(2000, 4), red(2000, 4))).toBe(false);
    expect(isFailing(red(1000, 50), red(1000, 50))).toBe(false); // usual
    expect(isFailing(red(100, 6), red(100, 2))).toBe(false); // chance
    expect(isFailing(red(100, 4), red(1000, 0))).toBe(false); // too few
    expect(isFailing(red(100, 30), red(100, 30))).toBe(true); // always failing
    expect(isFailing(red(100, 10), null)).toBe(false);
    expect(isFailing(red(100, 40), null)).toBe(true);
  });
  it('compares durations only with enough calls', () => {
    expect(slowdown(red(100, 0, 300), red(100, 0, 100))).toBe(3);
    expect(slowdown(red(10, 0, 300), red(100, 0, 100))).toBeNull();
    expect(slowdown({ ...red(100, 0), p95: null }, red(100, 0))).toBeNull();
  });
  it('orders failing, silent, slow, then by calls, inferred last', () => {
    const a = answer(
      { name: 'db', now: red(90_000, 0), inferred: true }, { name: 'small', now: red(100, 0) }, { name: 'big', now: red(5000, 0) },
      { name: 'slow', now: red(100, 0, 200e6), usual: red(100, 0, 100e6) }, { name: 'slower', now: red(100, 0, 900e6), usual: red(100, 0, 100e6) },
      { name: 'gone', now: red(0, 0), usual: red(500, 0) }, { name: 'bad', now: red(100, 20), usual: red(100, 0) }, { name: 'worse', now: red(1000, 200), usual: red(1000, 0) },
    );
    expect(judge(a, periods(a, '')).map((s) => s.name)).toEqual(['worse', 'bad', 'gone', 'slower', 'slow', 'big', 'small', 'db']);
  });
  it('orders by errors, then by duration, if nothing can be compared', () => {
    const usual = null;
    const a = answer(
      { name: 'busy', now: red(9000, 0), usual }, { name: 'slow', now: red(100, 0, 900e6), usual }, { name: 'rare', now: red(2, 1, 5e9), usual },
      { name: 'some', now: red(1000, 10), usual }, { name: 'more', now: red(100, 8), usual }, { name: 'db', now: red(100, 20), usual, inferred: true },
    );
    expect(judge(a, periods(a, '')).map((s) => s.name)).toEqual(['more', 'some', 'slow', 'busy', 'rare', 'db']);
  });
  it('does not compare with a period that has hardly any data', () => {
    const a = answer({ name: 'a', now: red(1000, 100), usual: red(10, 0) });
    expect(periods(a, nanos(start - minute))).toEqual({ range: 600, usual: 60 });
    expect(judge(a, periods(a, nanos(start - minute)))[0]).toMatchObject({ state: 'normal', usualErrorShare: null, slowdown: null });
  });
  it('compares with requests that were sent later', () => {
    const sent = answer({ name: 'a', now: red(1000, 100), usual: red(1000, 0) });
    sent.total.usual = null;
    expect(periods(sent, nanos(start + minute)).usual).toBe(0);
    sent.total.usual = red(1000, 0);
    expect(periods(sent, nanos(start + minute)).usual).toBe(600);
  });
  it('calculates rates of steps, also of the last one', () => {
    const a = { start: nanos(start), end: nanos(start + 2.5 * minute), step: minute * 1e6 };
    expect(rates([60, 120, 60], a)).toEqual([1, 2, 2]);
    expect(rates([60, 120, 1], { ...a, end: nanos(start + 2.1 * minute) })).toEqual([1, 2, null]);
    expect(errorShares({ calls: [0, 10], errors: [0, 1] })).toEqual([null, 0.1]);
  });
});

describe('sentence', () => {
  const failing: Spec = { name: 'payment', now: red(2070, 132), usual: red(2000, 4), errors: [0, 1, 0, 1, 22, 22, 21, 22, 21, 22] };
  const version: Change = { at: nanos(start + 3.5 * minute), service: 'payment', kind: 'version', from: '2.13.4', to: '2.14.0' };

  it('names what is broken, since when, and after which version', () => {
    const a = answer(failing, { name: 'cart', now: red(100, 0, 240e6), usual: red(100, 0) }, { name: 'geo', now: red(100, 0) });
    expect(say(a, [version])).toEqual({
      text: '1 of 3 services is failing, 1 is slower than usual',
      details: ['payment fails 6.4 % of requests, usually 0.2 %, since 13:46 when version 2.14.0 appeared', 'cart has 2.4× its usual p95'],
    });
    expect(say(a, [{ ...version, service: 'cart' }]).details[0]).toBe('payment fails 6.4 % of requests, usually 0.2 %, since 13:46');
  });
  it('names a service with a new version before those that may depend on it', () => {
    const worse: Spec = { ...failing, name: 'checkout', now: red(4140, 264), usual: red(4000, 8) };
    const a = answer(worse, failing);
    expect(judge(a, periods(a, '')).map((s) => s.name)).toEqual(['checkout', 'payment']);
    expect(say(a, [version]).details.map((d) => d.split(' ')[0])).toEqual(['payment', 'checkout']);
    expect(say(a).details.map((d) => d.split(' ')[0])).toEqual(['checkout', 'payment']);
  });
  it('counts in the plural', () => {
    const gone: Spec = { name: 'gone', now: red(0, 0), usual: red(500, 0) };
    expect(say(answer(failing, { ...failing, name: 'b' }, gone)).text).toBe('2 of 3 services are failing, 1 gets no requests any more');
    expect(say(answer(failing)).text).toBe('payment is failing');
    expect(say(answer(gone, { name: 'a', now: red(10, 0) })).text).toBe('1 of 2 services gets no requests any more');
  });
  it('finds requests that stopped within the range', () => {
    const a = answer({ name: 'a', now: red(100, 0) }, { name: 'b', now: red(100, 0) });
    a.services[0].calls = [20, 20, 20, 20, 20, 0, 0, 0, 0, 0];
    expect(say(a)).toEqual({ text: '1 of 2 services gets no requests any more', details: ['a has had no requests since 13:47'] });
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
    expect(say(answer()).text).toBe('No requests in the last 10 minutes');
  });
});
