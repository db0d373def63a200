import { describe, expect, it } from 'vitest';
import * as f from './format';

const plain = (s: string): string => s.replaceAll('\u202f', ' ');

describe('format', () => {
  it.each([[0, '0'], [1, '0'], [7, '7 ns'], [414e3, '410 µs'], [9.49e6, '9.5 ms'], [20.2e6, '20 ms'], [999.6e6, '1.0 s'], [2.43e9, '2.4 s'], [52.34e9, '52 s'], [134e9, '2 m 10 s']])('percentile of %d', (ns, text) => {
    expect(plain(f.percentile(ns))).toBe(text);
  });

  it.each([[0, '0'], [1, '0'], [7, '7 ns'], [412e3, '412 µs'], [9.4e6, '9.40 ms'], [999.6e6, '1.00 s'], [1.84e9, '1.84 s'], [52.34e9, '52.3 s'], [59.96e9, '1 m 00 s'], [125e9, '2 m 05 s'], [3660e9, '1 h 01 m'], [90000e9, '1 d 01 h'], [-9e6, '−9.00 ms']])('duration of %d', (ns, text) => {
    expect(plain(f.duration(ns))).toBe(text);
  });
  it.each([[1e9, '1 s'], [1.25e9, '1.25 s'], [250e6, '250 ms'], [1.5e9, '1.5 s'], [10e9, '10 s']])('axis label of %d', (ns, text) => {
    expect(plain(f.axisDuration(ns))).toBe(text);
  });
  it('elapsed time', () => {
    expect([[0, 7900], [0, 125e3], [5, 0], [0, 90e3], [0, 30e3]].map(([a, b]) => plain(f.elapsed(a, b)))).toEqual(['7 s', '2 m 05 s', '0', '1 m 30 s', '30 s']);
  });
  it('counts and shares', () => {
    expect(f.count(12431)).toBe('12,431');
    expect([999, 1460, 9.24e6].map(f.short)).toEqual(['999', '1.46k', '9.24M']);
    expect([0, 0.0004, 0.064, 1].map(f.share).map(plain)).toEqual(['0', '<0.1 %', '6.4 %', '100 %']);
  });
  it('converts nanoseconds with a precision of a microsecond', () => {
    expect(f.millis('1714557600001500000')).toBe(1714557600001.5);
    expect(f.nanos(1714557600001.5)).toBe('1714557600001500000');
    expect(f.millis('1500000')).toBe(1.5);
  });
  it('times', () => {
    const t = Date.UTC(2026, 10, 22, 14, 22, 7, 318);
    expect(f.time(t, 'utc', t)).toBe('14:22:07.318');
    expect(f.time(t, 'utc', t + 86400e3, 0)).toBe('2026-11-22 14:22');
    expect(plain(f.age(t, t + 20 * 60e3))).toBe('20 min ago');
  });
});
