import { expect, test } from 'vitest';
import type { Graph, MapEdge, MapNode } from './model';
import { edgeQuery, slowest } from './queries';
import { callerSentence, mapSentence, names } from './sentence';

const node = (name: string, more: Partial<MapNode> = {}): MapNode => ({ name, peer: false, connection: '', requests: 1, errors: 0, p95: null, ...more });
const edge = (from: number, to: number, calls: number, errors: number): MapEdge => ({ from, to, calls, errors, timed: calls, p50: null, p95: 1_234_567, usual: null, connections: [], edges: 1, slowCalls: 0 });

const g: Graph = { nodes: ['checkout', 'cart', 'payment', 'web'].map((n) => node(n)), edges: [edge(0, 2, 100, 7), edge(1, 2, 300, 0), edge(3, 0, 100, 2), edge(2, 2, 5, 5)], seconds: 1 };

test('says who calls a service and which caller sees errors', () => {
  expect(callerSentence(g, g.nodes[2])).toBe('Called by cart and checkout. Errors are seen only by checkout (7.0\u202f%).');
  expect(callerSentence(g, g.nodes[0])).toBe('Called by web. Errors are seen by web (2.0\u202f%).');
  expect(callerSentence(g, g.nodes[3])).toBe('No service calls it.');
  expect(callerSentence({ ...g, edges: [edge(1, 2, 300, 2)] }, g.nodes[2])).toBe('Called by cart. Their calls succeed.');
});

test('says which edge fails most', () => {
  expect(mapSentence(g)).toBe('3 of 4 edges fail, most of all payment › payment: 100\u202f% of its calls');
  expect(mapSentence({ ...g, edges: [g.edges[1]] })).toBe('4 services, 1 edge, none failing');
  expect(mapSentence({ ...g, nodes: [node('a', { requests: 100, errors: 2 }), node('b', { requests: 40, errors: 3 })], edges: [edge(0, 1, 100, 0)] })).toBe('b fails 7.5\u202f% of its requests; no edge fails');
});

test('lists few names', () => {
  expect([names([]), names(['a']), names(['a', 'b', 'c']), names(['a', 'b', 'c', 'd'])]).toEqual(['', 'a', 'a, b and c', 'a, b and 2 more']);
});

test('searches for the calls of an edge', () => {
  expect(edgeQuery(g.nodes[0], g.nodes[2], 'error')).toBe('{ service = "checkout" } > { service = "payment" && error }');
  const db = node('sql"x', { peer: true, connection: 'database' });
  expect(edgeQuery(g.nodes[0], db)).toBe('{ service = "checkout" && (.db.system.name = "sql\\"x" || .db.system = "sql\\"x" || .peer.service = "sql\\"x") }');
  expect(slowest(g.edges[0])).toBe('duration >= 1234us');
});
