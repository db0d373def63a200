import { describe, expect, it } from 'vitest';
import type { Ingest } from '../api/types';
import { nanos } from './format';
import { addSample, currentRate, rateSeries, type Sample } from './ingest';

function answer(at: number, received: number, since = 0): Ingest {
  return {
    receives: true, now: nanos(at), since: nanos(since), received, refused: 0, refusedRequests: 0, dropped: 0,
    oldest: '', storedBytes: 0, maxBytes: 0, retention: 0,
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
});
