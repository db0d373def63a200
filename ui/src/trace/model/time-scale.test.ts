import { describe, expect, it } from 'vitest';
import { breaksOn, fractionAt, fractionOf, makeAxis, padding, pixel, timeAt } from '../timeline/axis';
import { extent } from '../timeline/bars';
import { marks } from '../timeline/ticks';
import { buildModel } from './build';
import { minimap } from './minimap';
import { pathStrip } from './path';
import { outlineOf, span } from './samples';
import { brokenScale, placeOf, plainScale, timeOf } from './time-scale';
import type { TraceModel } from './types';

const s = 1e9;
const plain = (text: string): string => text.replaceAll('\u202f', ' ');

/** A request of 1 s, a message that is processed from 5 m to 5 m 02 s, and one from 10 m to 10 m 01 s. */
function sample(): TraceModel {
  const consume = (at: number, takes: number) => span('consume', at * s, takes * s, { kind: 5, service: 'mail' });
  return buildModel(outlineOf(span('root', 0, s, { kind: 2, children: [consume(300, 2), consume(600, 1)] })), [], true);
}

describe('time scale', () => {
  const m = sample();
  const scale = brokenScale(m);

  it('shortens idle time, and nothing else', () => {
    expect([[...scale.from], [...scale.to]]).toEqual([[s, 302 * s], [300 * s, 600 * s]]);
    expect(scale.length).toBeCloseTo(4 * s / (1 - 2 * 0.08));
    expect(scale.width).toBeCloseTo(0.08 * scale.length);
    for (let i = 0; i < m.spans; i++) expect(placeOf(scale, m.end[i]) - placeOf(scale, m.start[i])).toBeCloseTo(m.end[i] - m.start[i], 0);
    expect([placeOf(scale, 0), placeOf(scale, m.duration)]).toEqual([0, expect.closeTo(scale.length, 0)]);
  });
  it('is inverted', () => {
    let before = -1;
    for (let time = 0; time <= m.duration; time += m.duration / 997) {
      const place = placeOf(scale, time);
      expect(place).toBeGreaterThan(before);
      expect(timeOf(scale, place)).toBeCloseTo(time, -2);
      before = place;
    }
  });
  it('has no breaks where they save nothing', () => {
    const short = buildModel(outlineOf(span('a', 0, 100), span('b', 104, 100), span('c', 212, 100)), [], true);
    expect(brokenScale(short)).toEqual(plainScale(312));
    expect(brokenScale(buildModel(outlineOf(span('a', 0, 100)), [], true))).toEqual(plainScale(100));
    const points = brokenScale(buildModel(outlineOf(span('a', 0, 0), span('b', 3600 * s, 0)), [], true));
    expect([points.at.length, placeOf(points, 3600 * s)]).toEqual([1, expect.closeTo(points.length)]);
  });
  it('has at most 40 breaks, the longest ones', () => {
    const many = buildModel(outlineOf(...Array.from({ length: 60 }, (_, i) => span('a', i * (2000 + i), 100))), [], true);
    const broken = brokenScale(many);
    expect([broken.at.length, broken.to[39]]).toEqual([40, many.start[59]]);
    expect(40 * broken.width).toBeCloseTo(0.35 * broken.length);
  });

  it('is that of axis, bars, minimap and path', () => {
    const axis = makeAxis(scale, [0, 1], 1000 + padding);
    const bar = extent(axis, m.start[1], m.end[1]);
    expect(bar.right - bar.left).toBeCloseTo((2 * s) / scale.length * 1000);
    expect(timeAt(axis, pixel(axis, 301 * s))).toBeCloseTo(301 * s, -2);
    expect(fractionAt(axis, pixel(axis, 301 * s))).toBeCloseTo(fractionOf(scale, 301 * s));
    expect(breaksOn(axis).map((b) => [Math.round(b.left), Math.round(b.right), b.time / s])).toEqual([[210, 290, 299], [710, 790, 298]]);
    const map = minimap(m, 100, 1, scale);
    const drawn = /^w{21,22}\.{6,8}m{42,43}\.{6,8}m{21,22}$/;
    expect(Array.from(map.service, (v) => (v < 0 ? '.' : m.services[v][0])).join('')).toMatch(drawn);
    const strip = pathStrip(m, 100, scale);
    expect(Array.from(strip.service, (v) => (v < 0 ? '.' : m.services[v][0])).join('')).toMatch(drawn);
    const zoomed = makeAxis(scale, [fractionOf(scale, 300 * s), fractionOf(scale, 302 * s)], 1000 + padding);
    expect([zoomed.from, zoomed.to]).toEqual([expect.closeTo(300 * s, -2), expect.closeTo(302 * s, -2)]);
    expect(breaksOn(zoomed).every((b) => b.right - b.left < 13)).toBe(true);
  });
  it('says on the axis what is left out, and the time after it', () => {
    const { ticks, breaks } = marks(makeAxis(scale, [0, 1], 1000 + padding));
    expect(breaks.map((b) => plain(b.label))).toEqual(['4 m 59 s idle', '4 m 58 s idle']);
    expect(ticks.map((tick) => plain(tick.label))).toEqual(['0', '500 ms', '5 m 00 s', '5 m 00.5 s', '5 m 01 s', '5 m 01.5 s', '10 m 00 s', '10 m 00.5 s', '10 m 01 s']);
    expect(marks(makeAxis(scale, [0, 1], 700)).breaks.map((b) => plain(b.label))).toEqual(['4 m 59 s idle', '4 m 58 s idle']);
    const narrow = marks(makeAxis(scale, [0, 1], 150));
    expect(narrow.breaks.filter((b) => b.label)).toHaveLength(1);
  });
});
