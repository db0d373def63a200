import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ApiError } from '../api/client';
import { Files, serverSource } from './client';
import { Handler } from './handler';
import { outlineOf, span } from './model/samples';
import { spanID } from './model/span';
import type { FindResult, TraceModel } from './model/types';
import type { CallMessage } from './protocol';

/** A worker in this thread. Messages are copied, as between threads. */
class WorkerHere {
  onmessage: ((e: { data: unknown }) => void) | null = null;
  onerror: ((e: { message: string }) => void) | null = null;
  private readonly handler = new Handler();
  private ended = false;

  postMessage(message: CallMessage): void {
    const { id, call, args } = structuredClone(message);
    this.handler.handle(call, args).then((result) => this.reply({ id, result }), (e: Error) => this.reply({ id, error: e.message }));
  }

  private reply(data: object): void {
    if (!this.ended) this.onmessage?.({ data: structuredClone(data) });
  }

  terminate(): void {
    this.ended = true;
  }
}

type Answer = { status?: number; body?: unknown; headers?: Record<string, string> };
let answers: Record<string, Answer>;
let asked: string[];

beforeEach(() => {
  answers = {};
  asked = [];
  vi.stubGlobal('Worker', WorkerHere);
  vi.stubGlobal('fetch', async (url: string, options: RequestInit) => {
    const etag = new Headers(options.headers).get('if-none-match');
    asked.push(url + (etag ? ' if not ' + etag : ''));
    const answer = answers[url.split('?')[0]] ?? { status: 404, body: '404 page not found\n' };
    if (etag && etag === answer.headers?.etag) return new Response(null, { status: 304 });
    const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
    return new Response(text, { status: answer.status ?? 200, headers: { 'content-type': typeof answer.body === 'string' ? 'text/plain' : 'application/json', ...answer.headers } });
  });
});
afterEach(() => vi.unstubAllGlobals());

const outline = outlineOf(span('GET /', 0, 100, { children: [span('SELECT', 10, 20, { service: 'db', shift: 5 })] }));
const page = '/api/ui/v1/outline/abc';
const jaeger = {
  data: [{
    traceID: 'abc', processes: { p: { serviceName: 'web' } },
    spans: [{ traceID: 'abc', spanID: '1', operationName: 'old', startTime: 1700000000000000, duration: 9, processID: 'p', tags: [{ key: 'user', type: 'string', value: 'ann' }] }],
  }],
};

async function findAll(find: (onResult: (r: FindResult) => void) => Promise<void>): Promise<FindResult[]> {
  const results: FindResult[] = [];
  await find((r) => results.push(r));
  return results;
}

describe('a trace of the server', () => {
  it('is decoded, and loaded again only if it changed', async () => {
    answers[page] = { body: { data: outline, errors: [{ msg: 'block 3 is damaged' }] }, headers: { etag: '"1"' } };
    const source = serverSource('abc');
    const model = (await source.load(true))!;
    expect([model.spans, model.skew, model.facts.messages, model.start[1]]).toEqual([2, true, ['block 3 is damaged'], 15]);
    expect((await source.withSkew(false)).start[1]).toBe(10);
    expect(await source.load(true)).toBeNull();
    answers[page].headers = { etag: '"2"' };
    expect((await source.load(true))!.spans).toBe(2);
    expect(asked).toEqual([page, page + ' if not "1"', page + ' if not "1"']);
  });
  it('is searched here, and then by the server', async () => {
    answers[page] = { body: { data: outline, errors: null } };
    answers[page + '/find'] = { body: { data: { matched: 1, ids: Buffer.from('0000000000000001', 'hex').toString('base64') }, errors: null } };
    const source = serverSource('abc');
    await source.load(true);
    const results = await findAll((f) => source.find('select', f));
    expect(results.map((r) => [[...r.spans], r.complete])).toEqual([[[1], false], [[0, 1], true]]);
    expect((await findAll((f) => source.find('get "a b"', f))).map((r) => [...r.spans])).toEqual([[], [0]]);
    expect(asked.slice(-2)).toEqual([page + '/find?q=get', page + '/find?q=a+b']);
    answers[page + '/find'] = { status: 503, body: { data: null, errors: [{ msg: 'too busy' }] } };
    expect((await findAll((f) => source.find('select', f))).map((r) => [[...r.spans], r.complete, r.message])).toEqual([[[1], false, ''], [[1], false, 'too busy']]);
    const abort = new AbortController();
    abort.abort();
    expect(await findAll((f) => source.find('select', f, abort.signal))).toEqual([]);
  });
  it('has own times at once, and attributes from the server', async () => {
    answers[page] = { body: { data: outline, errors: null } };
    answers[page + '/keys'] = { body: { data: { key: ['span.user'], spans: [1], more: false }, errors: null } };
    answers[page + '/values'] = { body: { data: { values: ['ann'], ids: Buffer.from('0000000000000002', 'hex').toString('base64'), value: [0] }, errors: null } };
    const source = serverSource('abc');
    const model = (await source.load(true))!;
    const { lane, lanes, self } = await source.extras();
    expect([[...lane], lanes, [...self]]).toEqual([[0, 1], 2, [80, 20]]);
    expect((await source.keys()).key).toEqual(['span.user']);
    const { values, value } = await source.values('span.user');
    expect([values, [...value], model.spans]).toEqual([['ann'], [-1, 0], 2]);
    expect(asked.slice(-2)).toEqual([page + '/keys', page + '/values?key=span.user']);
    answers[page + '/values'] = { status: 503, body: { data: null, errors: [{ msg: 'too busy' }] } };
    await expect(source.values('span.user')).rejects.toThrow('too busy');
  });
  it('asks for at most 100 spans at once', async () => {
    answers[page + '/spans'] = { body: { data: { spans: [{ spanID: 'x' }] }, errors: null } };
    const details = await serverSource('abc').details(Array.from({ length: 250 }, (_, i) => String(i)));
    expect([details.length, asked.length, new URLSearchParams(asked[2].split('?')[1]).get('ids')!.split(',').length]).toEqual([3, 3, 50]);
  });
  it.each<[string, Answer]>([
    ['a server without outlines', { status: 404, body: '404 page not found' }],
    ['a server that does not implement them', { status: 501, body: 'no' }],
    ['a server that answers with its page', { status: 200, body: '<!doctype html>' }],
  ])('is loaded in Jaeger’s format from %s', async (_, answer) => {
    answers[page] = answer;
    answers['/api/traces/abc'] = { body: jaeger };
    const source = serverSource('abc');
    const model = (await source.load(true))!;
    expect([model.spans, model.names[0]]).toEqual([1, 'old']);
    expect((await source.details([spanID(model, 0)]))[0].attributes[0].value).toBe('ann');
    expect((await findAll((f) => source.find('ANN', f))).map((r) => [[...r.spans], r.complete])).toEqual([[[0], true]]);
    expect(asked).toHaveLength(2);
  });
  it('that does not exist is an error', async () => {
    answers[page] = { status: 404, body: { data: null, errors: [{ code: 404, msg: 'trace not found' }] } };
    await expect(serverSource('abc').load(true)).rejects.toMatchObject({ status: 404, message: 'trace not found' });
    expect(asked).toHaveLength(1);
    delete answers[page];
    await expect(serverSource('abc').load(true)).rejects.toBeInstanceOf(ApiError);
    answers[page] = { body: { data: { ...outline, spans: 9 }, errors: null } };
    await expect(serverSource('abc').load(true)).rejects.toThrow('outline: column parent has 2 values for 9 spans');
  });
  it('that is closed answers nothing', async () => {
    answers[page] = { body: { data: outline, errors: null } };
    const source = serverSource('abc');
    await source.load(true);
    const later = source.withSkew(false);
    source.close();
    await expect(later).rejects.toMatchObject({ name: 'AbortError' });
  });
});

describe('files', () => {
  it('are read, listed and opened without requests', async () => {
    const files = new Files();
    const content = await files.read([{ name: 'a.json', blob: new Blob([JSON.stringify(jaeger)]) }, { name: 'b.txt', blob: new Blob(['x']) }]);
    expect(content.traces).toEqual([{ traceID: 'abc'.padStart(32, '0'), file: 'a.json', rootService: 'web', rootName: 'old', start: '1700000000000000000', duration: 9000, spans: 1, errors: 0, services: 1, orphans: 0 }]);
    expect(content.problems).toEqual([{ file: 'b.txt', text: 'Line 1, column 1: this is not JSON, “x” is not allowed here.' }]);
    const source = files.source(content.traces[0].traceID, 'a.json');
    const model = (await source.load(true)) as TraceModel;
    expect([source.kind, model.spans, await source.load(true)]).toEqual(['file', 1, null]);
    expect((await source.details(['1']))[0].name).toBe('old');
    expect((await findAll((f) => source.find('user=ann', f))).map((r) => [...r.spans])).toEqual([[0]]);
    expect((await source.keys()).key).toContain('span.user');
    expect([[...(await source.values('span.user')).value], (await source.extras()).lanes]).toEqual([[0], 1]);
    await expect(source.find('{ error }', () => undefined)).rejects.toThrow('Searches in braces need a server. Search for words instead.');
    expect(asked).toEqual([]);
  });
});
