import { afterEach, describe, expect, it } from 'vitest';
import german from '../../texts/de.json';
import * as f from './format';
import { setCatalog } from './text';
import { lastName, parseInstant } from './time-input';

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

describe('format in German', () => {
  afterEach(() => setCatalog(null));

  it('has the signs and the order of the language', () => {
    setCatalog(german);
    const t = Date.UTC(2026, 10, 22, 14, 22, 7, 318);
    expect([f.duration(1.84e9), f.percentile(9.49e6), f.axisDuration(1.5e9), f.share(0.0004), f.bytes(41.2e9)].map(plain)).toEqual(['1,84 s', '9,5 ms', '1,5 s', '<0,1 %', '41,2 GB']);
    expect([f.count(1234567), f.short(1460), f.rate(0.001), f.fixed(2.5, 2), f.trimmed(2.5, 2), f.number(-1234567), f.number(0.031249)]).toEqual(['1.234.567', '1,46k', '<0,01', '2,50', '2,5', '−1.234.567', '0,03125']);
    expect([f.time(t, 'utc', t), f.date(t, 'utc'), f.monthDay(t, 'utc'), plain(f.age(t, t + 20 * 60e3))]).toEqual(['14:22:07,318', '22.11.2026', '22.11.', 'vor 20 min']);
    expect(['1h', '24h', '1d', '2w'].map(lastName)).toEqual(['Letzte Stunde', 'Letzte 24 Stunden', 'Letzter Tag', 'Letzte 2 Wochen']);
    expect([parseInstant('22.11.2026 14:22:07,318', 'utc', 0), parseInstant('2.1.2026', 'utc', 0)]).toEqual([t, Date.UTC(2026, 0, 2)]);
  });
});
