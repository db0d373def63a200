import { describe, expect, it } from 'vitest';
import type { Ingest } from '../api/types';
import { nanos } from './format';
import { addSample, currentRate, orderedReceivers, rateSeries, receiverLabel, troubled, type Sample } from './ingest';

function answer(at: number, received: number, since = 0): Ingest {
  return {
    receives: true, now: nanos(at), since: nanos(since), received, refused: 0, refusedRequests: 0, dropped: 0,
    oldest: '', oldestStart: '', newestStart: '', storedBytes: 0, maxBytes: 0, retention: 0,
    receivers: [{ name: 'otlp', protocol: 'grpc', endpoint: ':4317', received: received / 2, refused: 0, refusedRequests: 0 }],
  };
}

describe('ingest', () => {
  it('calculates rates from samples', () => {
    let samples: Sample[] = [];
    let before: Ingest | null = null;
    const at = (ms: number, n: number, since?: number): void => {
      const a = answer(ms, n, since);
      samples = addSample(samples, before, a);
      before = a;
    };
    at(1e6, 100);
    expect(currentRate(samples)).toBeNull();
    at(1e6 + 2000, 300);
    expect(currentRate(samples)).toBe(100);
    expect(currentRate(samples, 'otlp grpc')).toBe(50);
    at(1e6 + 20_000, 300);
    at(1e6 + 25_000, 300);
    expect(currentRate(samples)).toBe(0);
    expect(rateSeries(samples)).toEqual([100, 0, 0]);
    at(1e6 + 30_000, 5, 1e6 + 29_000);
    expect(samples).toHaveLength(1);
  });

  it('notices recent refusals and all drops', () => {
    const a = answer(1e9, 10);
    expect(troubled(a, 1e9)).toBe(false);
    expect(troubled({ ...a, dropped: 1 }, 1e9)).toBe(true);
    const refused = { ...a, receivers: [{ ...a.receivers[0], refusedRequests: 2, refusal: { reason: 'r', at: nanos(1e9) } }] };
    expect(troubled(refused, 1e9 + 60_000)).toBe(true);
    expect(troubled(refused, 1e9 + 2 * 3_600_000)).toBe(false);
  });

  it('orders and names receivers', () => {
    const a = answer(1e9, 10);
    a.receivers = ['custom', 'native', 'zipkin', 'otlp'].map((name) => ({ ...a.receivers[0], name, protocol: name === 'custom' ? '' : 'http' }));
    expect(orderedReceivers(a).map(receiverLabel)).toEqual(['OTLP over HTTP', 'Zipkin over HTTP', 'Jaeger collector over HTTP', 'custom']);
  });
});
