import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { buildModel } from '../model/build';
import type { TraceModel } from '../model/types';
import { flag } from '../model/types';
import { findInDetails } from './find';
import { leastShifts, type Clocks } from './skew';
import { FileTraces } from './traces';

type Input = string | object | Uint8Array;

async function open(...inputs: Input[]): Promise<FileTraces> {
  const files = new FileTraces();
  await files.read(inputs.map((c, i) => ({ name: `${i}.json`, blob: new Blob([typeof c === 'string' || c instanceof Uint8Array ? (c as BlobPart) : JSON.stringify(c)]) })));
  return files;
}

async function problem(input: Input): Promise<string> {
  return (await open(input)).problems.map((p) => p.text).join(' | ');
}

/** The model of the newest trace as lines: indentation, service, operation, start, duration. */
function draw(files: FileTraces): string[] {
  const m = modelOf(files);
  return Array.from({ length: m.spans }, (_, i) => `${'  '.repeat(m.depth[i])}${m.services[m.service[i]]} ${m.names[m.name[i]]} ${m.start[i]}+${m.end[i] - m.start[i]}`);
}

function modelOf(files: FileTraces, at = 0): TraceModel {
  return buildModel(files.outline(files.list()[at].traceID).outline, [], true);
}

const jaeger = {
  data: [{
    traceID: 'abc',
    processes: { p1: { serviceName: 'web', tags: [{ key: 'hostname', type: 'string', value: 'h1' }] }, p2: { serviceName: 'db' } },
    spans: [
      { traceID: 'abc', spanID: '2', operationName: 'SELECT', references: [{ refType: 'CHILD_OF', traceID: 'abc', spanID: '1' }], startTime: 1700000000000100, duration: 50.5, processID: 'p2', tags: [{ key: 'error', type: 'bool', value: true }, { key: 'span.kind', type: 'string', value: 'client' }, { key: 'rows', type: 'int64', value: 7 }], logs: [{ timestamp: 1700000000000120, fields: [{ key: 'event', type: 'string', value: 'retry' }, { key: 'n', type: 'int64', value: 1 }] }], warnings: ['clock skew'] },
      { traceID: 'abc', spanID: '1', operationName: 'GET /', startTime: 1700000000000000, duration: 200, processID: 'p1', references: [{ refType: 'FOLLOWS_FROM', traceID: 'def', spanID: '9' }], tags: [] },
    ],
  }],
};

const otlp = (spans: object[], service = 'web'): object => ({
  resourceSpans: [{ resource: { attributes: [{ key: 'service.name', value: { stringValue: service } }] }, scopeSpans: [{ scope: { name: 'lib', version: '1' }, spans }] }],
});
const span = (spanId: string, parentSpanId: string, start: number, end: number, more: object = {}): object => ({
  traceId: '0af7651916cd43dd8448eb211c80319c', spanId: spanId.padStart(16, '0'), parentSpanId: parentSpanId && parentSpanId.padStart(16, '0'), name: 'op' + spanId,
  kind: 2, startTimeUnixNano: String(1700000000000000000n + BigInt(start)), endTimeUnixNano: String(1700000000000000000n + BigInt(end)), ...more,
});

describe('Jaeger files', () => {
  it('become a model with details', async () => {
    const files = await open(jaeger);
    expect(files.problems).toEqual([]);
    expect(draw(files)).toEqual(['web GET / 0+200000', '  db SELECT 100000+50500']);
    const { outline, spans } = files.outline('abc'.padStart(32, '0'));
    expect(outline.columns.flags).toBe('21');
    expect(outline.columns.kind).toBe('03');
    expect(outline.events).toEqual({ span: [1], time: [20000], name: [2], exception: '0' });
    expect(outline.links).toEqual({ span: [0], count: [1] });
    expect(outline.warnings).toEqual({ span: [1], text: ['clock skew'] });
    const [detail] = files.details(spans, ['2']);
    expect(detail).toMatchObject({ spanID: '0000000000000002', parentSpanID: '0000000000000001', service: 'db', kind: 'client', status: 'error', start: '1700000000000100000', duration: 50500 });
    expect(detail.attributes).toEqual([{ key: 'rows', type: 'int', value: '7' }]);
    expect(detail.events[0].attributes).toEqual([{ key: 'n', type: 'int', value: '1' }]);
  });
  it('can be a trace, or a list of traces', async () => {
    expect((await open(jaeger.data[0])).list()).toHaveLength(1);
    expect((await open([jaeger.data[0], { ...jaeger.data[0], traceID: 'x', spans: [{ ...jaeger.data[0].spans[1], traceID: 'fff' }] }])).list()).toHaveLength(2);
  });
});

describe('OTLP files', () => {
  it('can be one document, one for each line, several after another, compressed, or an answer of the v3 API', async () => {
    const [a, b] = [otlp([span('1', '', 0, 100)]), otlp([span('2', '1', 10, 50)], 'db')];
    const forms: Input[] = [
      { resourceSpans: [...(a as { resourceSpans: [] }).resourceSpans, ...(b as { resourceSpans: [] }).resourceSpans] },
      JSON.stringify(a) + '\n' + JSON.stringify(b) + '\n',
      JSON.stringify(a, null, 2) + '\n' + JSON.stringify({ resourceLogs: [] }) + JSON.stringify(b, null, 2),
      gzipSync(JSON.stringify([a, b])),
      JSON.stringify({ result: a }) + '\n' + JSON.stringify({ result: b }),
      { batches: [...(a as { resourceSpans: [] }).resourceSpans, ...(b as { resourceSpans: [] }).resourceSpans] },
    ];
    for (const form of forms) {
      const files = await open(form);
      expect(files.problems).toEqual([]);
      expect(draw(files)).toEqual(['web op1 0+100', '  db op2 10+40']);
    }
  });
  it('have attributes of all types', async () => {
    const attributes = [
      { key: 's', value: { stringValue: 'x' } }, { key: 'i', value: { intValue: '9223372036854775807' } }, { key: 'd', value: { doubleValue: 1.5 } }, { key: 'b', value: { boolValue: false } },
      { key: 'y', value: { bytesValue: 'AQI=' } }, { key: 'a', value: { arrayValue: { values: [{ intValue: '1' }, { stringValue: 'q' }] } } }, { key: 'k', value: { kvlistValue: { values: [{ key: 'n', value: { boolValue: true } }] } } }, { key: 'e', value: {} },
    ];
    const files = await open(otlp([span('1', '', 0, 100, { attributes, status: { code: 'STATUS_CODE_ERROR', message: 'no' } })]));
    const { spans } = files.outline(files.list()[0].traceID);
    expect(spans[0].attributes.map((a) => `${a.key} ${a.type} ${a.value}`)).toEqual(['s string x', 'i int 9223372036854775807', 'd double 1.5', 'b bool false', 'y bytes AQI=', 'a array ["1","q"]', 'k kvlist {"n":true}', 'e empty ']);
    expect([spans[0].status, spans[0].statusMessage, spans[0].scope.name]).toEqual(['error', 'no', 'lib']);
  });
  it('keep a span once, and name what calls a system without spans', async () => {
    const call = span('2', '1', 10, 50, { kind: 3, attributes: [{ key: 'db.system', value: { stringValue: 'redis' } }] });
    const m = modelOf(await open(otlp([span('1', '', 0, 100), call]), otlp([call])));
    expect(m.spans).toBe(2);
    expect(m.services[m.peer[1]]).toBe('redis');
    expect(m.sentence.map((p) => p.text)).toEqual(['web', 'waiting on redis']);
  });
  it('find text in attributes', async () => {
    const files = await open(otlp([span('1', '', 0, 100, { attributes: [{ key: 'user.id', value: { stringValue: 'Zoë-77' } }] }), span('2', '1', 0, 1)]));
    const { spans } = files.outline(files.list()[0].traceID);
    expect([...findInDetails(modelOf(files), spans, 'zoë-77')]).toEqual([0]);
    expect([...findInDetails(modelOf(files), spans, 'op2 web')]).toEqual([1]);
  });
});

describe('Zipkin files', () => {
  it('v2: both sides of a call have one id', async () => {
    const files = await open([
      { traceId: '1', id: 'a', name: 'get', kind: 'CLIENT', timestamp: 1700000000000000, duration: 100, localEndpoint: { serviceName: 'web' }, tags: { error: 'timeout' } },
      { traceId: '1', id: 'a', name: 'get', kind: 'SERVER', shared: true, timestamp: 1700000000000010, duration: 80, localEndpoint: { serviceName: 'api' } },
      { traceId: '1', id: 'b', parentId: 'a', name: 'query', kind: 'CLIENT', timestamp: 1700000000000020, duration: 50, localEndpoint: { serviceName: 'api' }, remoteEndpoint: { serviceName: 'mysql' } },
    ]);
    expect(draw(files)).toEqual(['web get 0+100000', '  api get 10000+80000', '    api query 20000+50000']);
    const m = modelOf(files);
    expect([...m.flags].map((f) => f & flag.error)).toEqual([1, 0, 0]);
    expect(m.services[m.peer[2]]).toBe('mysql');
    const { spans } = files.outline(files.list()[0].traceID);
    expect(files.details(spans, ['a'])).toHaveLength(2);
    expect(spans[0].attributes).toContainEqual({ key: 'error', type: 'string', value: 'timeout' });
  });
  it('v1: annotations make the sides of a call', async () => {
    const [web, api] = ['web', 'api'].map((serviceName) => ({ serviceName, ipv4: '10.0.0.1' }));
    const t = 1700000000000000;
    const files = await open([{
      traceId: '1', id: 'a', name: 'get', timestamp: t, duration: 100,
      annotations: [{ timestamp: t, value: 'cs', endpoint: web }, { timestamp: t + 10, value: 'sr', endpoint: api }, { timestamp: t + 90, value: 'ss', endpoint: api }, { timestamp: t + 100, value: 'cr', endpoint: web }, { timestamp: t + 50, value: 'cache miss', endpoint: api }],
      binaryAnnotations: [{ key: 'http.path', value: '/x', endpoint: web }, { key: 'sa', value: true, endpoint: api }],
    }]);
    expect(draw(files)).toEqual(['web get 0+100000', '  api get 10000+80000']);
    const { spans } = files.outline(files.list()[0].traceID);
    expect(spans[1].events.map((e) => e.name)).toEqual(['cache miss']);
    expect(spans[0].attributes.map((a) => a.key)).toEqual(['http.path', 'peer.service', 'net.peer.ip']);
  });
});

describe('traces that are not whole', () => {
  it('have spans with missing parents, cycles, own parents, and no times', async () => {
    const files = await open(otlp([
      span('1', '', 5, 10), span('2', '99', 0, 9), span('3', '4', 6, 7), span('4', '3', 7, 8), span('5', '5', 8, 9), { ...span('6', '1', 0, 0), startTimeUnixNano: '0', endTimeUnixNano: '0' },
    ]));
    expect(draw(files)).toEqual(['web op2 0+9', 'web op1 5+5', '  web op6 0+1', 'web op5 8+1', 'web op3 6+1', '  web op4 7+1']);
    const m = modelOf(files);
    expect([...m.facts.orphans].map((i) => m.names[m.name[i]])).toEqual(['op2', 'op5', 'op3']);
    expect(m.facts.causes.map((c) => c.kind)).toEqual(['sampling']);
  });
  it('clock skew between hosts is corrected and can be seen without', async () => {
    const on = (host: string, service: string, ...spans: object[]): object => ({
      resourceSpans: [{ resource: { attributes: [{ key: 'service.name', value: { stringValue: service } }, { key: 'host.name', value: { stringValue: host } }] }, scopeSpans: [{ spans }] }],
    });
    const files = await open([on('h1', 'web', span('1', '', 1000, 2000)), on('h2', 'api', span('2', '1', 500, 900), span('3', '2', 600, 700))]);
    const { outline } = files.outline(files.list()[0].traceID);
    expect([...buildModel(outline, [], true).start]).toEqual([0, 0, 100]);
    const raw = buildModel(outline, [], false);
    expect([...raw.start]).toEqual([500, 0, 100]);
    expect(raw.begin).toBe('1700000000000000500');
    expect(raw.facts.skew).toEqual([{ service: 1, shift: 500, spans: 2 }]);
  });
  it('clock skew is corrected as by the server', () => {
    const shared = new URL('../../../../internal/translate/adjust/testdata/least-shifts.ndjson', import.meta.url);
    const traces = readFileSync(shared, 'utf8').trim().split('\n').map((line) => JSON.parse(line) as Omit<Clocks, 'host' | 'timed'> & { host: number[]; shift: number[] });
    expect(traces.some((c) => c.shift.some((s) => s < 0))).toBe(true);
    for (const { shift, ...c } of traces) {
      expect(leastShifts({ ...c, host: c.host.map((h) => (h ? String(h) : '')), timed: c.host.map(() => true) })).toEqual(shift);
    }
  });
});

describe('mistakes', () => {
  it.each<[string, Input, string]>([
    ['empty', ' \n', 'The file is empty.'],
    ['not JSON', '{"data": [1,\n  2,,3]}', 'Line 2, column 5: this is not JSON, “,3]}” is not allowed here.'],
    ['text', 'hello', 'Line 1, column 1: this is not JSON, “hello” is not allowed here.'],
    ['a key without value', '{"a": [true, {"b" 1}]}', 'Line 1, column 19: this is not JSON, “1}]}” is not allowed here.'],
    ['a list that ends as an object', '[{"a": [1}]', 'Line 1, column 10: this is not JSON, “}]” is not allowed here.'],
    ['cut off', JSON.stringify(jaeger).slice(0, 200), 'Line 1, column 1: the JSON document that begins here has no end. The file may be cut off.'],
    ['another format', { a: 1, b: 2 }, 'The document: an object with “a”, “b” is not a Jaeger, OTLP or Zipkin trace.'],
    ['a list of numbers', '[1]', 'The document: a list of values is not a Jaeger, OTLP or Zipkin trace.'],
    ['a bad id', otlp([{ ...span('1', '', 0, 1), traceId: 'xyz' }]), 'The document: trace ID: “xyz” is not a hexadecimal ID of at most 32 digits.'],
    ['no trace', { data: [] }, 'The file has no new spans.'],
    ['damaged gzip', gzipSync('{}').subarray(0, 15), 'The file cannot be decompressed: it is damaged or cut off.'],
  ])('%s', async (_, input, text) => {
    expect(await problem(input)).toBe(text);
  });
  it('keep what comes before them', async () => {
    const files = await open(JSON.stringify(otlp([span('1', '', 0, 1)])) + '\n{"resourceSpans": [}]}\n');
    expect(files.list()).toHaveLength(1);
    expect(files.problems[0].text).toBe('Line 2, column 20: this is not JSON, “}]}” is not allowed here. The 1 span before that was read.');
  });
});

const captured = new URL('../../../../test/e2e/query/testdata/real-traces/', import.meta.url);

describe('captured traces', () => {
  it.each([
    ['otlp-thoth-apt-subprocesses', 1, 305], ['otlp-thoth-github-download', 1, 39], ['otlp-thoth-gradle', 56, 74], ['otlp-thoth-netcat-links', 2, 8],
    ['otlp-thoth-python', 1, 71], ['otlp-thoth-renovate-601', 1, 601], ['otlp-thoth-renovate-697-orphans', 2, 697], ['otlp-thoth-renovate-747', 1, 747],
  ])('%s', async (name, traces, spans) => {
    const files = new FileTraces();
    await files.read([{ name, blob: new Blob([readFileSync(new URL(name + '.json.gz', captured))]) }]);
    expect(files.problems).toEqual([]);
    const list = files.list();
    expect([list.length, list.reduce((n, t) => n + t.spans, 0)]).toEqual([traces, spans]);
    for (const [i] of list.entries()) {
      const m = modelOf(files, i);
      expect(m.spans).toBe(list[i].spans);
      expect(m.facts.orphans.length).toBe(list[i].orphans);
    }
  });
});
