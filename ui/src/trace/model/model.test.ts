import { describe, expect, it } from 'vitest';
import type { Outline } from '../../api/types';
import { buildModel } from './build';
import { findAlso, findSpans, isSearch, terms } from './find';
import { minimap } from './minimap';
import { criticalPath, pathStrip } from './path';
import { defaultRows, visibleRows } from './rows';
import { deepOutline, largeOutline, outlineOf, span, type Sample } from './samples';
import { partIndex, sentenceText } from './sentence';
import { durationOf, findSpan, kindOf, nextOf, operation, shownService, spanID, warningsOf } from './span';
import { flag, type TraceModel } from './types';

const model = (...tops: Sample[]): TraceModel => buildModel(outlineOf(...tops), [], true);
const plain = (s: string): string => s.replaceAll('\u202f', ' ');

const shop = (): TraceModel => model(span('GET /', 0, 1000, {
  service: 'frontend', kind: 2, children: [
    span('lookup', 10, 230, { kind: 3, peer: 'redis' }),
    span('Charge', 310, 610, { service: 'payment', kind: 2, flags: flag.error, children: [span('SELECT', 320, 20, { kind: 3, peer: 'postgres', flags: flag.error })] }),
    span('mail', 930, 500, { service: 'mail', kind: 5 }),
  ],
}));

describe('model', () => {
  it('has the columns of the outline', () => {
    const m = shop();
    expect([...m.parent]).toEqual([-1, 0, 0, 2, 0]);
    expect([...m.depth]).toEqual([0, 1, 1, 2, 1]);
    expect([...m.subtree]).toEqual([5, 1, 2, 1, 1]);
    expect([...m.start]).toEqual([0, 10, 310, 320, 930]);
    expect([m.duration, durationOf(m, 2), operation(m, 2), kindOf(m, 2), m.services[shownService(m, 1)]]).toEqual([1430, 610, 'Charge', 'server', 'redis']);
    expect([...m.flags]).toEqual([flag.root | flag.errorBelow, 0, flag.error | flag.errorBelow, flag.error, 0]);
    expect([spanID(m, 2), findSpan(m, '3'), findSpan(m, '0000000000000003'), findSpan(m, 'ffff'), findSpan(m, 'x')]).toEqual(['0000000000000003', 2, 2, -1, -1]);
  });
  it('has events, links and warnings', () => {
    const o: Outline = { ...outlineOf(span('a', 0, 9, { children: [span('b', 1, 2)] })), events: { span: [1, 1], time: [0, 1], name: [0, 1], exception: '01' }, links: { span: [1], count: [2] }, warnings: { span: [1, 1], text: ['w1', 'w2'] } };
    const m = buildModel(o, [], true);
    expect([[...m.eventFirst], [...m.eventTime], [...m.eventException], [...m.links]]).toEqual([[0, 0, 2], [0, 1], [0, 1], [0, 2]]);
    expect([warningsOf(m, 1), warningsOf(m, 0), m.flags[1] & flag.warned, m.facts.events]).toEqual([['w1', 'w2'], [], flag.warned, 2]);
  });
  it('applies the clock-skew correction, or not', () => {
    const o = outlineOf(span('a', 0, 100, { children: [span('b', 0, 20, { service: 'db', shift: -30, children: [span('c', 5, 5, { shift: -30 })] })] }));
    const m = buildModel(o, [], true);
    expect([[...m.start], m.begin, m.duration]).toEqual([[30, 0, 5], '1699999999999999970', 130]);
    expect([...m.flags].map((f) => f & flag.shifted)).toEqual([0, flag.shifted, flag.shifted]);
    expect(m.facts.skew).toEqual([{ service: 1, shift: -30, spans: 2 }]);
    expect([...buildModel(o, [], false).start]).toEqual([0, 0, 5]);
  });
  it.each<[string, (o: Outline) => void, string]>([
    ['a parent after its child', (o) => (o.columns.parent[1] = 2), 'outline: parent 2 of span 1 is not before it'],
    ['spans that are not depth first', (o) => (o.columns.parent = [-1, -1, 0]), 'outline: span 2 does not follow its parent 0'],
    ['a missing column', (o) => o.columns.start.pop(), 'outline: column start has 2 values for 3 spans'],
    ['an unknown name', (o) => (o.columns.name[0] = 9), 'outline: name 9 of span 0 is not in the list of 3'],
    ['short ids', (o) => (o.columns.id = 'AAAA'), 'outline: 3 bytes of ids, expected 24'],
  ])('rejects %s', (_, change, text) => {
    const o = outlineOf(span('a', 0, 3), span('b', 0, 3), span('c', 0, 3));
    change(o);
    expect(() => buildModel(o, [], true)).toThrow(text);
  });
});

describe('sentence', () => {
  it('has parts that URLs name, also by the text of earlier versions', () => {
    const parts = shop().sentence;
    const keys = ['service:payment', 'service:mail', 'waiting:redis', 'gap', 'others'];
    expect(parts.map((p) => p.key)).toEqual(keys);
    expect(keys.map((key) => partIndex(parts, key))).toEqual([0, 1, 2, 3, 4]);
    expect(['payment', 'mail', 'waiting on redis', 'gaps', 'in 2 others'].map((text) => partIndex(parts, text))).toEqual([0, 1, 2, 3, 4]);
    expect(['', 'redis', 'service:'].map((name) => partIndex(parts, name))).toEqual([-1, -1, -1]);
  });

  it('names services, peers and gaps by their share of the critical path', () => {
    expect(plain(sentenceText(shop()))).toBe('1.43 µs: 41 % payment, 30 % mail, 16 % waiting on redis, 5 % gaps, 8 % in 2 others');
    const part = shop().sentence[0];
    expect([part.kind, [...part.spans], part.time]).toEqual(['service', [2], 590]);
  });
  it('has the time in which spans run as its base, also where children outlive the root', () => {
    const s = 1e9;
    const core = span('POST /order', 0, 0.0367 * s, { service: 'coreSrv', kind: 2, children: [
      span('publish', 0.01 * s, 0.001 * s, { kind: 4, children: [span('consume', 290 * s, 12.8 * s, { service: 'billing', kind: 5 })] }),
    ] });
    const m = model(core);
    expect(plain(sentenceText(m))).toBe('5 m 03 s, 4 m 50 s of it idle. The other 12.8 s: 100 % billing, <1 % coreSrv');
    expect(m.sentence.reduce((sum, p) => sum + p.time, 0) + m.idle).toBeCloseTo(302.8 * s);
  });
  it('sums up small parts', () => {
    const calls = Array.from({ length: 6 }, (_, i) => span('call', 700 + i * 50, 50, { service: 's' + i }));
    expect(plain(sentenceText(model(span('a', 0, 1000, { children: [span('b', 0, 700, { service: 'big' }), ...calls] }))))).toBe('1.00 µs: 70 % big, 5 % s0, 5 % s1, 20 % in 4 others');
  });
});

describe('facts', () => {
  it('count what is in the trace', () => {
    const { facts } = shop();
    expect([facts.services, facts.depth, [...facts.errors], facts.causes]).toEqual([3, 3, [2, 3], []]);
    expect([nextOf(facts.errors, -1), nextOf(facts.errors, 2), nextOf(facts.errors, 3), nextOf(facts.errors, 3, -1), nextOf(facts.errors, 0, -1), nextOf(new Int32Array(0), 1)]).toEqual([2, 3, 2, 2, 3, -1]);
  });
  it('say why spans can be missing', () => {
    const orphan = { flags: flag.orphan };
    const kinds = (o: Outline, messages: string[] = []): string[] => buildModel(o, messages, true).facts.causes.map((c) => c.kind);
    expect(kinds({ ...outlineOf(span('a', 0, 1, orphan)), growing: true })).toEqual(['growing', 'root', 'sampling']);
    expect(kinds(outlineOf(span('a', 0, 1), span('b', 0, 1, { ...orphan, service: 'db' })))).toEqual(['service', 'sampling']);
    expect(kinds({ ...outlineOf(span('a', 0, 1)), cut: true }, ['incomplete'])).toEqual(['cut']);
    expect(kinds(outlineOf(span('a', 0, 1)), ['block 3 is damaged'])).toEqual(['unreadable']);
  });
});

describe('find', () => {
  it('looks at operation, service, peer, kind, status, id, events and warnings', () => {
    const m = buildModel({ ...outlineOf(span('GET /Cart', 0, 9, { kind: 2, children: [span('query', 1, 2, { service: 'db', kind: 3, peer: 'redis', flags: 1 })] })), events: { span: [1], time: [0], name: [0], exception: '0' }, warnings: { span: [0], text: ['Clock skew'] } }, [], true);
    const found = (q: string): number[] => [...findSpans(m, q)];
    expect([found('cart'), found('DB'), found('redis'), found('serv'), found('error'), found('0000000000000002'), found('skew'), found('nothing'), found(' ')]).toEqual([[0, 1], [1], [1], [0], [1], [1], [0], [], []]);
    expect([found('get server'), found('get db'), found('"get /"'), found('"/ get"')]).toEqual([[0], [1], [0, 1], []]);
    expect(terms(' a "B c" d"')).toEqual(['a', 'b c', 'd']);
  });
  it('adds what the server found, for each word', () => {
    const m = shop();
    expect([...findAlso(m, 'select', [m.ids.slice(8, 24)])]).toEqual([1, 2, 3]);
    expect([...findAlso(m, 'lookup ann', [new Uint8Array(0), m.ids.slice(8, 24)])]).toEqual([1]);
    expect([...findAlso(m, '{ error || name = "lookup" }', [m.ids.slice(24, 32)])]).toEqual([3]);
    expect([isSearch(' !({ a }'), isSearch('a {'), terms('{ a "b c" } '), [...findSpans(m, '{}')]]).toEqual([true, false, ['{ a "b c" }'], []]);
  });
  it('finds the beginning of ids', () => {
    const m = buildModel(deepOutline(300), [], true);
    expect([...findSpans(m, '0000000000000012c')]).toEqual([]);
    expect([...findSpans(m, '000000000000012')]).toEqual([...Array(13).keys()].map((k) => 287 + k));
    expect(findSpans(m, '0000')).toHaveLength(300);
  });
});

describe('minimap', () => {
  it('reduces spans to cells', () => {
    const m = shop();
    const map = minimap(m, 10, 3);
    const lane = (l: number): string => Array.from(map.service.subarray(10 * l, 10 * l + 10), (s) => (s < 0 ? '.' : m.services[s][0])).join('');
    expect([lane(0), lane(1), lane(2)]).toEqual(['rrfffff...', '..ppppp...', '......mmmm']);
    expect([...map.error].flatMap((e, i) => (e ? [i] : []))).toEqual([12]);
  });
  it('shows the critical path', () => {
    const m = shop();
    const strip = pathStrip(m, 20, undefined, 0, 1000);
    expect(Array.from(strip.service, (s, i) => (strip.gap[i] ? '/' : s < 0 ? '.' : m.services[s][0])).join('')).toBe('rrrrr/ppppppppppppff');
    expect([...pathStrip(m, 4, undefined, 2000, 3000).service]).toEqual([-1, -1, -1, -1]);
    const calls = Array.from({ length: 20 }, (_, i) => span('call', Math.floor(i / 2) * 10 + (i % 2) * 3, 3, { service: 'db' }));
    const many = model(span('a', 0, 100, { children: calls })); // the calls take 60 %, each less than the time between two of them
    expect(many.services[pathStrip(many, 1).service[0]]).toBe('db');
  });
  it('of traces without duration and with many spans', () => {
    expect([...minimap(model(span('a', 0, 0)), 3, 5).service]).toEqual([0, -1, -1]);
    const m = buildModel(largeOutline(50_000), [], true);
    const { service } = minimap(m, 500, 40);
    for (let c = 0; c < 500; c++) expect(Array.from({ length: 40 }, (_, l) => service[500 * l + c]).some((s) => s >= 0)).toBe(true);
  });
});

describe('times', () => {
  it('of 100,000 spans', () => {
    const text = JSON.stringify({ data: largeOutline(100_000), errors: null });
    const lines: string[] = [];
    const measure = <T>(what: string, f: () => T): T => {
      const runs = Array.from({ length: 5 }, () => {
        const t = performance.now();
        f();
        return performance.now() - t;
      });
      lines.push(`${what}: ${runs[0].toFixed(0)} ms first, ${runs.sort((a, b) => a - b)[2].toFixed(0)} ms median`);
      return f();
    };
    const o = measure(`parse ${(text.length / 1e6).toFixed(1)} MB`, () => (JSON.parse(text) as { data: Outline }).data);
    const m = measure('decode with tree, path, sentence, facts', () => buildModel(o, [], true));
    measure('critical path', () => criticalPath(m));
    const rows = measure('rows, default folding', () => visibleRows(m, defaultRows));
    const all = measure('rows, all unfolded', () => visibleRows(m, { ...defaultRows, level: 100 }));
    measure('rows, one toggled', () => visibleRows(m, { ...defaultRows, toggled: new Set([1]) }));
    measure('rows, minimum duration', () => visibleRows(m, { ...defaultRows, min: 40_000 }));
    const found = measure('find a word', () => findSpans(m, 'operation-17'));
    measure('find two words and an id', () => findSpans(m, 'get 0000'));
    measure('rows, only matching', () => visibleRows(m, { ...defaultRows, only: found }));
    measure('minimap 1000 x 40', () => minimap(m, 1000, 40));
    measure('path strip', () => pathStrip(m, 1000));
    console.log(`100,000 spans, ${rows.row.length} rows by default, ${all.row.length} unfolded, ${m.path.span.length} segments\n${lines.join('\n')}`);
    expect(m.spans).toBe(100_000);
  });
});
