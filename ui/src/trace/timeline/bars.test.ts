import { describe, expect, it } from 'vitest';
import { buildModel } from '../model/build';
import { outlineOf, span } from '../model/samples';
import { plainScale } from '../model/time-scale';
import type { TraceModel, Usual } from '../model/types';
import { fractionAt, leastZoom, makeAxis, padding, pixel } from './axis';
import { eventMarks, extent, groupTime, pieces, slivers } from './bars';
import { layers, usualRange } from './layers';

const ms = 1e6;

/** A root of 100 ms with a child from 20 to 60 ms, and 30 calls of 1 ms in 1.5 ms steps from 10 ms. */
function sample(): TraceModel {
  const calls = Array.from({ length: 30 }, (_, i) => span('get', (10 + 1.5 * i) * ms, ms));
  return buildModel(outlineOf(span('root', 0, 100 * ms, { children: [...calls.slice(0, 6), span('child', 20 * ms, 40 * ms), ...calls.slice(6)] })), [], true);
}

const axisOf = (model: TraceModel, zoom: [number, number] = [0, 1]) => makeAxis(plainScale(model.duration), zoom, 1000 + padding);

describe('axis', () => {
  it('maps times to pixels and back', () => {
    const model = sample();
    const axis = axisOf(model);
    expect(pixel(axis, 0)).toBe(0);
    expect(pixel(axis, 100 * ms)).toBeCloseTo(1000);
    expect(fractionAt(axis, 250)).toBeCloseTo(0.25);
    expect(fractionAt(axis, -20)).toBe(0);
    const zoomed = axisOf(model, [0.5, 0.75]);
    expect(pixel(zoomed, 50 * ms)).toBeCloseTo(0);
    expect(pixel(zoomed, 75 * ms)).toBeCloseTo(1000);
    expect(leastZoom(axis.times)).toBeCloseTo(1e-5);
  });
});

describe('bars', () => {
  const model = sample();
  const axis = axisOf(model);
  const child = [...model.name].findIndex((n) => model.names[n] === 'child');

  it('limits a bar to the axis and keeps it visible', () => {
    expect(extent(axis, 20 * ms, 60 * ms)).toEqual({ left: expect.closeTo(200) as number, right: expect.closeTo(600) as number, outside: '' });
    expect(extent(axis, 20 * ms, 20 * ms)).toMatchObject({ left: expect.closeTo(200) as number, right: expect.closeTo(202) as number });
    const zoomed = axisOf(model, [0.5, 0.75]);
    expect(extent(zoomed, 0, 100 * ms)).toEqual({ left: -4, right: zoomed.width + 4, outside: '' });
    expect(extent(zoomed, 0, 10 * ms).outside).toBe('before');
    expect(extent(zoomed, 90 * ms, 95 * ms).outside).toBe('after');
  });

  it('draws the critical path of a span, and of its subtree when folded', () => {
    const own = pieces(model, model.path, 0, false, axis, extent(axis, 0, 100 * ms));
    const all = pieces(model, model.path, 0, true, axis, extent(axis, 0, 100 * ms));
    expect(all).toEqual([{ left: 0, width: expect.closeTo(1000) as number, gap: false }]);
    expect(own.at(-1)).toMatchObject({ left: expect.closeTo(600) as number, width: expect.closeTo(400) as number });
    for (let i = 1; i < own.length; i++) expect(own[i].left).toBeGreaterThan(own[i - 1].left + own[i - 1].width);
    expect(pieces(model, model.path, child, false, axis, extent(axis, 20 * ms, 60 * ms))).toEqual([{ left: 0, width: expect.closeTo(400) as number, gap: false }]);
  });

  it('draws the members of a group', () => {
    const group = model.groups.of[1];
    expect(group).toBeGreaterThanOrEqual(0);
    expect(groupTime(model, group)).toEqual({ start: 10 * ms, end: 54.5 * ms });
    const list = slivers(model, group, axis);
    expect(list).toHaveLength(30);
    expect(list[0]).toMatchObject({ left: expect.closeTo(100) as number, width: expect.closeTo(10) as number });
    expect(slivers(model, group, makeAxis(plainScale(model.duration), [0, 1], 40))).toHaveLength(1);
    expect(slivers(model, group, axisOf(model, [0.9, 1]))).toEqual([]);
  });

  it('joins events that are close, and shows the exception', () => {
    const outline = outlineOf(span('root', 0, 100 * ms, { children: [span('a', 50 * ms, 10 * ms)] }));
    outline.names.push('event', 'exception');
    outline.events = { span: [1, 1, 1], time: [0, 0.1 * ms, 5 * ms], name: [2, 3, 2], exception: '010' };
    const m = buildModel(outline, [], true);
    const marks = eventMarks(m, 1, axisOf(m));
    expect(marks).toEqual([{ at: expect.closeTo(500) as number, exception: true, event: 0, count: 2 }, { at: expect.closeTo(550) as number, exception: false, event: 2, count: 1 }]);
    expect(eventMarks(m, 0, axisOf(m))).toEqual([]);
  });
});

describe('backgrounds', () => {
  const usual = (p50: number, p95: number, calls = 100): Usual => ({
    of: Int32Array.of(0), p50: Float64Array.of(p50 * ms), p95: Float64Array.of(p95 * ms), p99: Float64Array.of(1), calls: Float64Array.of(calls),
    bucket: [0], counts: [[calls]], mark: new Uint8Array(1), start: '0', end: '1',
  });
  const model = buildModel(outlineOf(span('root', 0, 100 * ms)), [], true);

  it('draws the usual range from the start of the span, limited to the axis', () => {
    const axis = axisOf(model);
    expect(usualRange(usual(20, 40), model, 0, axis)).toEqual({
      backgroundPosition: '200px calc(100% - 3px),200px calc(100% - 1px),399px calc(100% - 1px)', backgroundSize: '200px 1px,1px 5px,1px 5px',
    });
    expect(usualRange(usual(20, 1e6), model, 0, axis)!.backgroundSize).toBe(`${axis.width + 2 - 200}px 1px,1px 5px,1px 5px`);
    expect(usualRange(usual(20, 20), model, 0, axis)!.backgroundSize).toBe('2px 1px,1px 5px,1px 5px');
  });

  it('leaves out ranges that cannot be seen, and those of few calls', () => {
    expect(usualRange(usual(0.1, 0.3), model, 0, axisOf(model))).toBe(null);
    expect(usualRange(usual(200, 400), model, 0, axisOf(model))).toBe(null);
    expect(usualRange(usual(20, 40, 19), model, 0, axisOf(model))).toBe(null);
  });

  it('draws the pieces on the path', () => {
    expect(layers([])).toBe(null);
    const l = layers([{ left: 0, width: 10, gap: false }, { left: 20, width: 5.25, gap: true }])!;
    expect([l.backgroundPosition, l.backgroundSize]).toEqual(['0px,20px', '10px,5.3px']);
    expect(l.backgroundImage!.match(/currentColor 0 0|currentColor 0 1\.5px/g)).toEqual(['currentColor 0 0', 'currentColor 0 1.5px']);
  });
});
