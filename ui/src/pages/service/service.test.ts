import { describe, expect, it } from 'vitest';
import type { ServiceMap } from '../../api/map';
import type { OneService, OperationSeries, RoleName } from '../../api/service';
import type { Facet, Incident, Red, TraceSummary, Usual } from '../../api/types';
import { judge } from '../overview/health';
import { time } from '../../shell/format';
import { calleeField, calleesOf } from './callees';
import { textsApart } from './examples';
import { neighborsOf } from './neighbors';
import { operationQuery, roleQuery, slower } from './queries';
import { asServices, mainRole, markedOperation, missingKind, timeShare } from './roles';
import { causesOf, serviceSentence } from './sentence';

const red = (calls: number, errors = 0, p95 = 1e9): Red => ({ calls, errors, p50: 1e8, p95, p99: 2e9 });
const none: Red = { calls: 0, errors: 0, p50: null, p95: null, p99: null };

const series = (name: string, summary: Red, usual: Red | null = null, time = summary.calls): OperationSeries => ({
  name, time, summary, usual: usual && ({ ...usual, quiet: 3600e9 } satisfies Usual), incident: null, since: null, calls: [summary.calls, 0], errors: [summary.errors, 0], p50: [1, 1], p95: [1, 1], p99: [1, 1],
});

const service = (totals: Partial<Record<RoleName, OperationSeries>>): OneService => ({
  start: '3600000000000', end: '7200000000000', usualStart: '0', step: 1_800_000_000_000, points: 2,
  roles: (['requests', 'calls', 'internal'] as const).map((role) => {
    const total = totals[role] ?? series('', none);
    return { role, total, operations: total.summary.calls > 0 ? [{ ...total, name: `${role} a` }, { ...total, name: 'b', time: total.time / 4 }] : [], omitted: 0 };
  }),
});

describe('roles', () => {
  it('names the kind that is missing', () => {
    expect(missingKind(service({ requests: series('', red(1)), calls: series('', red(1)) }))).toBeNull();
    expect(missingKind(service({}))).toBeNull();
    expect(missingKind(service({ calls: series('', red(1)) }))!.what).toContain('only client and producer spans');
    expect(missingKind(service({ internal: series('', red(1)) }))!.advice).toContain('SERVER or CONSUMER');
    expect(missingKind(service({ calls: series('', red(1)), internal: series('', red(1)) }))!.what).toContain('client, producer and internal');
    // Requests that have stopped are not missing.
    expect(missingKind(service({ requests: series('', none, red(9)), calls: series('', red(1)) }))).toBeNull();
  });

  it('finds the main role and the marked operation', () => {
    const s = service({ calls: series('', red(8)), internal: series('', red(4)) });
    expect(mainRole(s)!.role).toBe('calls');
    expect(mainRole(service({}))).toBeNull();
    expect(markedOperation(s, '')!.operation.name).toBe('calls a');
    expect(markedOperation(s, 'internal a')!.role.role).toBe('internal');
    expect(markedOperation(s, 'gone')!.operation.name).toBe('calls a');
    expect(markedOperation(service({}), 'x')).toBeNull();
    expect(timeShare(s.roles[1].operations[1], s.roles[1])).toBe(0.25);
  });
});

describe('sentence', () => {
  const say = (summary: Red, usual: Red | null, stopped: number | null = null, incident: Incident | null = null) => {
    const s = service({ requests: { ...series('', summary, usual), incident } });
    const services = asServices(s, 'pay', mainRole(s)!);
    const [health] = judge(services);
    return serviceSentence(health, stopped, (ms) => time(ms, 'utc', 7_200_000, 0));
  };
  it('says what is unusual', () => {
    const incident = (kind: Incident['kind'], r: Red, end: string | null = null): Incident => ({ kind, start: '3600000000000', end, slowFrom: kind === 'slow' ? 1.5e9 : 0, ...r });
    const failing = say(red(1000, 100), red(1000, 1), null, incident('errors', red(400, 100)));
    expect(failing).toEqual({ mark: 'error', text: expect.stringMatching(/^pay fails 25\.0.% of requests, usually 0\.1.%, since 01:00\.$/) as string });
    expect(say(red(1000, 100), red(1000, 1), null, incident('errors', red(400, 100), '6000000000000')).text)
      .toMatch(/^Back to normal: pay failed 25\.0.% of requests, usually 0\.1.%, ended 01:40 after 40.min/);
    expect(say(red(1000, 0), red(1000, 0, 1e9), null, incident('slow', red(400, 0, 3e9))).text).toMatch(/^pay is slow: p95 3\.0.s, usually 1\.0.s, since 01:00\.$/);
    expect(say(red(1000), red(1000))).toEqual({ mark: 'ok', text: expect.stringMatching(/^As usual/) as string });
    expect(say(red(1000), null).text).toContain('not enough earlier data');
    expect(say(red(1000), red(1000), 3_700_000).text).toBe('No requests since 01:01.');
    expect(say(red(1000), red(1000), -60_000).text).toBe('No requests since 1969-12-31 23:59.');
    expect(say(none, red(900))).toEqual({ mark: 'warn', text: 'Requests have stopped.' });
    expect(say(none, red(9))).toEqual({ mark: '', text: 'No requests in this time range.' }); // a quiet hour is usual
  });
});

describe('causes', () => {
  it('names the operation and the call that fail', () => {
    const s = service({ requests: series('', red(1000, 100)), calls: series('', red(1000, 90)) });
    s.roles[0].operations = [series('A', red(500, 95)), series('B', red(500, 5))];
    s.roles[1].operations = [series('ok', red(1000)), series('GET', red(900, 90))];
    expect(causesOf(s, 'pay').map((c) => c.text.replaceAll('\u202f', ' '))).toEqual(['95.0 % of the failures are in A.', '10.0 % of its GET calls failed.']);
    expect(causesOf(s, 'pay')[0].q).toBe('{ service = "pay" && name = "A" && error }');
    s.roles[0].operations = [series('A', red(500, 50)), series('B', red(500, 50))];
    s.roles[1].operations = [series('GET', red(9000, 90))];
    expect(causesOf(s, 'pay')).toEqual([]);
    expect(causesOf(service({ requests: series('', red(1000, 4)) }), 'pay')).toEqual([]);
  });
});

describe('queries', () => {
  it('quotes names', () => {
    expect(operationQuery('a"b', 'GET /', 'error')).toBe('{ service = "a\\"b" && name = "GET /" && error }');
    expect(roleQuery('a', 'requests', slower(1.5e9))).toBe('{ service = "a" && (kind = server || kind = consumer) && duration >= 1.5s }');
  });
});

describe('neighbors', () => {
  const map: ServiceMap = {
    start: '0', end: '1', measured: true,
    nodes: { name: ['web', 'pay', 'db', 'pay'], peer: [false, false, true, true], connection: ['', '', 'database', ''], requests: [1, 1, 1, 1], errors: [0, 0, 0, 0], p95: [1, 1, 1, 1] },
    edges: { parent: [0, 1, 1, 1, 0], child: [1, 2, 0, 1, 3], calls: [5, 7, 9, 3, 1], errors: [1, 0, 0, 0, 0], timed: [5, 7, 9, 3, 1], p50: [1, 1, 1, 1, 1], p95: [2, 3, 4, 5, 6], connections: [[], [], [], [], []] },
  };
  it('lists callers and calls by their number, without calls to itself', () => {
    expect(neighborsOf(map, 'pay', 'callers')).toEqual([{ name: 'web', peer: false, connection: '', calls: 5, errors: 1, p95: 2 }]);
    expect(neighborsOf(map, 'pay', 'calls').map((n) => n.name)).toEqual(['web', 'db']);
    expect(neighborsOf(map, 'unknown', 'calls')).toEqual([]);
  });
});

describe('callees', () => {
  const facet = (field: string, spans: number): Facet => ({ field, spans, selected: 0, distinct: 1, other: 0, score: 0, values: { text: [], count: [], selected: [], score: [] } });

  it('uses the attribute that names most of them', () => {
    expect(calleeField({ facets: [facet('span.server.address', 90), facet('span.peer.service', 90)] })).toBe('span.peer.service');
    expect(calleeField({ facets: [facet('span.server.address', 90), facet('span.peer.service', 10)] })).toBe('span.server.address');
    expect(calleeField({ facets: [] })).toBe('');
  });

  it('tells calls of one name apart, where there are several callees', () => {
    const groups = { values: [['POST', 'POST', 'GET', 'POST'], ['north', 'kestrel', 'north', null]], where: ['a', 'b', 'c', 'd'], count: [5, 3, 2, 1], errors: [4, 0, 0, 0], p50: [1, 1, 1, 1], p95: [2, 2, 2, 2], p99: [3, 3, 3, 3], time: [9, 8, 7, 6] };
    const found = calleesOf({ of: 'spans', by: ['name', 'span.peer.service'], spans: 11, errors: 4, share: 1, scanned: 11, estimatedSpans: 11, estimatedErrors: 4, distinct: 4, other: 0, all: { p50: 1, p95: 2, p99: 3, time: 30 }, groups });
    expect([...found].map(([name, list]) => [name, list.map((c) => [c.callee, c.count, c.errors])])).toEqual([['POST', [['north', 5, 4], ['kestrel', 3, 0]]]]);
  });
});

describe('examples', () => {
  const trace = (name: string, statusMessage: string, rootName: string): TraceSummary => ({ traceID: '', match: '', rootService: '', rootName, start: '', duration: 1, spans: 1, errors: 1, orphans: 0, services: [], fields: { name: [name], statusMessage: [statusMessage] } });
  const texts = (...list: TraceSummary[]): string[] => [...textsApart(list).values()];

  it('leave out what all of them share', () => {
    expect(texts(trace('Charge', 'no answer of a', 'GET /'), trace('Charge', 'no answer of b', 'GET /'))).toEqual(['no answer of a', 'no answer of b']);
    expect(texts(trace('Charge', 'timeout', 'GET /'), trace('Refund', 'timeout', 'GET /'))).toEqual(['Charge', 'Refund']);
    expect(texts(trace('Charge', 'timeout', 'GET /'), trace('Charge', 'timeout', 'POST /'))).toEqual(['in GET /', 'in POST /']);
    expect(texts(trace('Charge', 'timeout', 'GET /'))).toEqual(['timeout']);
  });
});
