import { describe, expect, it } from 'vitest';
import { buildModel } from '../trace/model/build';
import { outlineOf, span, type Sample } from '../trace/model/samples';
import type { TraceModel } from '../trace/model/types';
import { attributeDifferences, isIncidental } from './attributes';
import { strokes } from './bars';
import { compareTraces } from './match';
import { byImpact, calls, shownRows } from './rank';
import { namedParts } from './sentence';
import { change, type Comparison } from './types';

const ms = 1e6;
const model = (...tops: Sample[]): TraceModel => buildModel(outlineOf(...tops), [], true);

/** Rows as text: operation, calls and times in ms, what changed. */
function rows(c: Comparison, a: TraceModel, b: TraceModel): string[] {
  return Array.from({ length: c.rows }, (_, r) => {
    const inA = calls(c, r, 'a') > 0;
    const [m, side] = inA ? [a, c.a] : [b, c.b];
    const bits = Object.entries(change).filter(([, bit]) => c.change[r] & bit).map(([name]) => name);
    return `${' '.repeat(c.depth[r])}${m.names[m.name[side.spans[side.offset[r]]]]} ${calls(c, r, 'a')}:${calls(c, r, 'b')} ${c.a.time[r] / ms}:${c.b.time[r] / ms}${bits.length ? ' ' + bits.join('+') : ''}`;
  });
}

function compare(a: TraceModel, b: TraceModel): { c: Comparison; text: string[]; first: string } {
  const c = compareTraces(a, b);
  const text = rows(c, a, b);
  return { c, text, first: text[byImpact(c, text.keys())[0]].trim().split(' ')[0] };
}

describe('matching', () => {
  it('joins calls of the same path, and keeps the order of both traces', () => {
    const a = model(span('root', 0, 100 * ms, { children: [span('x', 0, 10 * ms), span('y', 10 * ms, 10 * ms), span('x', 20 * ms, 10 * ms), span('z', 40 * ms, 10 * ms)] }));
    const b = model(span('root', 0, 100 * ms, { children: [span('first', 0, 5 * ms), span('x', 5 * ms, 10 * ms), span('new', 20 * ms, 5 * ms), span('newer', 25 * ms, 5 * ms), span('z', 40 * ms, 10 * ms)] }));
    expect(compare(a, b).text).toEqual([
      'root 1:1 100:100', ' first 0:1 0:5 onlyB+time', ' x 2:1 20:10 calls+time', ' new 0:1 0:5 onlyB+time', ' newer 0:1 0:5 onlyB+time', ' y 1:0 10:0 onlyA+time', ' z 1:1 10:10',
    ]);
  });

  it('tells operations apart by service and kind, but not by their callers’ other calls', () => {
    const a = model(span('root', 0, 100 * ms, { children: [span('get', 0, 10 * ms, { kind: 3 }), span('get', 10 * ms, 10 * ms, { service: 'cart' })] }));
    const b = model(span('root', 0, 100 * ms, { children: [span('get', 0, 10 * ms, { kind: 1 }), span('get', 10 * ms, 10 * ms, { service: 'cart' })] }));
    expect(compare(a, b).text).toEqual(['root 1:1 100:100', ' get 0:1 0:10 onlyB+time', ' get 1:0 10:0 onlyA+time', ' get 1:1 10:10']);
  });

  it('counts calls at the same time once', () => {
    const a = model(span('root', 0, 100 * ms, { children: [span('x', 0, 50 * ms), span('x', 10 * ms, 20 * ms), span('x', 40 * ms, 30 * ms)] }));
    const { c } = compare(a, a);
    expect([c.a.time[1], c.a.own[1], c.a.own[0]]).toEqual([70 * ms, 100 * ms, 30 * ms]);
    expect(shownRows(c, false).length).toBe(0);
    expect(shownRows(c, true).length).toBe(2);
  });

  it('says that a call changed, and not those that it makes', () => {
    const attempt = (at: number): Sample => span('attempt', at, 20 * ms, { children: [span('send', at, 10 * ms), span('send', at + 10 * ms, 10 * ms)] });
    const a = model(span('root', 0, 100 * ms, { children: [attempt(0), attempt(20 * ms), attempt(40 * ms)] }));
    const b = model(span('root', 0, 60 * ms, { children: [attempt(0)] }));
    const { text, first } = compare(a, b);
    expect(text).toEqual(['root 1:1 100:60 time', ' attempt 3:1 60:20 calls+time', '  send 6:2 60:20 time']);
    expect(first).toBe('attempt');
  });

  it('finds where errors begin', () => {
    const tree = (flags: number): TraceModel => model(span('root', 0, 100 * ms, { flags: 2 | flags, children: [span('mid', 0, 90 * ms, { flags, children: [span('leaf', 0, 80 * ms, { flags })] })] }));
    const { text, first } = compare(tree(1), tree(0));
    expect([text, first]).toEqual([['root 1:1 100:100', ' mid 1:1 90:90', '  leaf 1:1 80:80 errors'], 'leaf']);
    const withNew = model(span('root', 0, 100 * ms, { flags: 3, children: [span('mid', 0, 90 * ms, { children: [span('leaf', 0, 80 * ms)] }), span('retry', 90 * ms, 5 * ms, { flags: 1 })] }));
    expect(compare(withNew, tree(0)).text).toEqual(['root 1:1 100:100', ' mid 1:1 90:90', '  leaf 1:1 80:80', ' retry 1:0 5:0 onlyA+time']);
  });

  it('compares own time, also that of spans that send messages', () => {
    const tree = (mail: number): TraceModel => model(span('root', 0, 100 * ms, { children: [span('mail', 10 * ms, mail, { kind: 5, service: 'mail' })] }));
    const { c } = compare(tree(500 * ms), tree(5 * ms));
    expect([c.a.own[0], c.b.own[0]]).toEqual([100 * ms, 100 * ms]);
  });

  it('has no common row if the roots differ', () => {
    const { c, text } = compare(model(span('x', 0, ms)), model(span('y', 0, ms), span('z', ms, ms)));
    expect([c.common, text]).toEqual([false, ['y 0:1 0:1 onlyB+time', 'z 0:1 0:1 onlyB+time', 'x 1:0 1:0 onlyA+time']]);
  });

  it('sums the difference of the critical paths by service', () => {
    const tree = (redis: number, gap: number): TraceModel => model(span('root', 0, 100 * ms + redis + gap, { children: [
      span('get', 10 * ms, redis, { peer: 'redis', kind: 3 }), span('next', 10 * ms + redis + gap, 50 * ms, { service: 'cart' }),
    ] }));
    const { c } = compare(tree(40 * ms, 20 * ms), tree(10 * ms, 0));
    expect(c.parts.map((p) => `${p.kind} ${p.name} ${p.time / ms}`)).toEqual(['waiting redis 30', 'gap  20', 'service web 0', 'service cart 0']);
    expect(namedParts(c.parts, 50 * ms)).toMatchObject({ named: [{ name: 'redis' }, { kind: 'gap' }], rest: 0 });
    expect(namedParts([], 0)).toEqual({ named: [], rest: 0 });
  });

  it('of traces with 100,000 spans, of deep ones and of empty ones', () => {
    let deep = span('level', 0, ms);
    for (let i = 0; i < 1500; i++) deep = span('level', 0, ms, { children: [deep] });
    const wide = (n: number): TraceModel => model(span('root', 0, 100 * ms, { children: Array.from({ length: n }, (_, i) => span(`call ${i % 500}`, i, 10)) }));
    const [a, b] = [wide(100_000), wide(99_000)];
    const began = performance.now();
    const c = compareTraces(a, b);
    console.log(`two traces of 100,000 spans, ${c.rows} rows: ${Math.round(performance.now() - began)} ms`);
    expect([c.rows, calls(c, 1, 'a'), calls(c, 1, 'b')]).toEqual([501, 200, 198]);
    expect(compare(model(deep), model(span('level', 0, ms))).c.rows).toBe(1501);
    expect(compareTraces(model(), model(span('x', 0, ms))).rows).toBe(1);
    expect(compareTraces(model(), model()).parts).toEqual([]);
  });
});

describe('bars', () => {
  it('joins calls that touch', () => {
    const a = model(span('root', 0, 100 * ms, { children: [span('x', 0, 10 * ms), span('x', 10 * ms, 10 * ms), span('x', 50 * ms, 1)] }));
    const c = compareTraces(a, a);
    expect(strokes(a, c.a, 1, 2 ** -20)).toEqual([{ left: 0, width: 20 * ms / 2 ** 20 }, { left: 50 * ms / 2 ** 20, width: 2 }]);
  });
});

describe('attributes', () => {
  it('leaves out ids, ports and times', () => {
    const incidental = ['span.id', 'client.port', 'session_id', 'created.time'].map((key) => isIncidental(key, ['1', '2']));
    const values = [['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'], ['2026-11-23T02:00:00Z', '2026-11-23T03:00:00Z'], ['1795402574753', '1795402574754'], ['6ba7b810-9dad-11d1-80b4-00c04fd430c8']].map((v) => isIncidental('x', v));
    expect([...incidental, ...values]).toEqual(Array.from({ length: 8 }, () => true));
    expect([isIncidental('lock.waiters', ['7', '0']), isIncidental('paid', ['true', 'false']), isIncidental('valid', ['a'])]).toEqual([false, false, false]);
  });

  it('lists those of resources once for each service', () => {
    const detail = (spanID: string, waiters: string, version: string) => ({ spanID, attributes: [{ key: 'waiters', type: 'int', value: waiters }, { key: 'same', type: 'int', value: '1' }], resource: [{ key: 'version', type: 'string', value: version }] }) as never;
    const row = (n: number) => ({ row: n, service: 'cart', sender: 'cart', operation: `op ${n}`, a: [`a${n}`], b: [`b${n}`] });
    const [a, b] = ['a', 'b'].map((side, i) => new Map([1, 2].map((n) => [`${side}${n}`, detail(`${side}${n}`, String(i), i ? '1.0' : '1.1')])));
    expect(attributeDifferences([row(1), row(2), row(3)], a, b).map((d) => [d.operation, d.key, d.a, d.b])).toEqual([
      ['op 1', 'waiters', ['0'], ['1']], ['', 'version', ['1.1'], ['1.0']], ['op 2', 'waiters', ['0'], ['1']],
    ]);
  });
});
