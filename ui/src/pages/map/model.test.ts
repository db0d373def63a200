import { expect, test } from 'vitest';
import { grouped, groupsOf, maxNodes, prefixOf } from './groups';
import { generate } from '../../../test/map/generate';
import { pictureOf } from './picture';
import type { ServiceMap } from '../../api/map';
import { connected, graphOf, isFailing, isSlow, merge, strong, surroundings, type Graph } from './model';

/** A graph from texts such as `a>b 10/2`, which are calls and errors, in ten seconds. */
function graph(...edges: string[]): Graph {
  const names = [...new Set(edges.flatMap((e) => e.split(' ')[0].split('>')))];
  return {
    nodes: names.map((name) => ({ name, peer: false, connection: '', requests: 1, errors: 0, p95: 1 })), seconds: 10,
    edges: edges.map((text) => {
      const [ends, counts = '10/0'] = text.split(' ');
      const [from, to] = ends.split('>').map((n) => names.indexOf(n));
      const [calls, errors] = counts.split('/').map(Number);
      return { from, to, calls, errors, timed: calls, p50: 1, p95: calls, usual: null, connections: ['http'], edges: 1, slowCalls: 0 };
    }),
  };
}

const text = (g: Graph): string => g.edges.map((e) => `${g.nodes[e.from].name}>${g.nodes[e.to].name}`).sort().join(' ');

test('a focus keeps what leads to a service and what begins there', () => {
  const g = graph('a>b', 'b>c', 'c>d', 'd>e', 'x>d', 'a>y', 'd>b', 'c>c');
  expect(text(surroundings(g, 'c', 1))).toBe('b>c c>c c>d');
  expect(text(surroundings(g, 'c', 2))).toBe('a>b b>c c>c c>d d>b d>e');
  expect(surroundings(g, 'c', 0)).toBe(g);
  expect(surroundings(g, 'unknown', 2)).toBe(g);
  expect(surroundings(g, 'e', 1).nodes.map((n) => n.name)).toEqual(['d', 'e']);
});

test('weak edges are left out unless they fail', () => {
  const g = graph('a>b 100/0', 'a>c 5/0', 'a>d 5/1');
  expect(text(strong(g, 1))).toBe('a>b a>d');
  expect(strong(g, 0)).toBe(g);
  const { graph: rest, alone } = connected(strong(g, 1));
  expect([rest.nodes.map((n) => n.name), alone.map((n) => n.name)]).toEqual([['a', 'b', 'd'], ['c']]);
  expect(connected(strong(g, 1), 'c').alone).toEqual([]);
});

test('groups sum up their edges', () => {
  const g = merge(graph('a1>b1 10/1', 'a2>b1 30/0', 'a1>a2 5/0', 'b1>b1 7/0'), ['a', 'b', 'a']);
  expect(g.nodes.map((n) => [n.name, n.members])).toEqual([['a', ['a1', 'a2']], ['b', ['b1']]]);
  expect(g.edges.map((e) => [e.from, e.to, e.calls, e.errors, e.p50, e.p95, e.edges])).toEqual([[0, 1, 40, 1, null, 30, 2], [1, 1, 7, 0, 1, 7, 1]]);
  expect(isFailing(g.edges[0], 40)).toBe(true);
});

test.each([['shop/cart', 'shop'], ['shop.cart-db', 'shop'], ['cart-db', 'cart'], ['cart', ''], ['-x', ''], ['a:b', 'a']])('prefix of %s', (name, want) => {
  expect(prefixOf(name)).toBe(want);
});

test('a large map of pairs is not empty', () => {
  const all = graph(...Array.from({ length: 300 }, (_, i) => `x${i}>y${i} ${i === 7 ? 90 : 10}/0`));
  const { graph: drawn } = pictureOf(all, { focus: '', depth: 0, least: 0, groups: [] });
  expect([drawn.nodes.length, drawn.edges.length]).toEqual([maxNodes, maxNodes / 2]);
  expect(text(drawn)).toContain('x7>y7');
});

test('a prefix that most services have is no group', () => {
  const g = graph(...Array.from({ length: 300 }, (_, i) => `svc-${i}>svc-${i + 1}`));
  const drawn = grouped(g, [], '');
  expect(drawn.nodes.length).toBeGreaterThan(1);
  expect(drawn.edges.length).toBeGreaterThan(1);
});

test('maps of up to 200 services have no groups', () => {
  const g = graphOf(generate(maxNodes));
  expect(groupsOf(g, new Set(), '').every((name) => name === '')).toBe(true);
});

test.each([[300, true], [1000, true], [1000, false]])('%i services are put together, with prefixes: %s', (n, prefixes) => {
  const g = graphOf(generate(n, { prefixes }));
  const small = grouped(g, [], '');
  expect(small.nodes.length).toBeLessThanOrEqual(maxNodes);
  const members = small.nodes.flatMap((node) => node.members ?? [node.name]);
  expect(members.sort()).toEqual(g.nodes.map((node) => node.name).sort());
  expect(small.nodes.reduce((sum, node) => sum + node.requests, 0)).toBe(g.nodes.reduce((sum, node) => sum + node.requests, 0));
  const group = small.nodes.find((node) => node.members)!;
  const open = grouped(g, [group.name], '');
  expect(open.nodes.length).toBe(small.nodes.length - 1 + group.members!.length);
  const focus = g.nodes[5].name;
  expect(grouped(g, [], focus).nodes.some((node) => node.name === focus && !node.members)).toBe(true);
});

test('edges are slow compared with the day before, or from a second if that is not known', () => {
  const answer = (p95: number[], timed = 200): ServiceMap => ({
    start: '0', end: '3600000000000', measured: true,
    nodes: { name: ['a', 'b', 'c'], peer: [false, false, false], connection: ['', '', ''], requests: [1, 1, 1], errors: [0, 0, 0], p95: [null, null, null] },
    edges: { parent: [0, 1], child: [1, 2], calls: [timed, timed], errors: [0, 0], timed: [timed, timed], p50: p95, p95, connections: [[], []] },
  });
  const slow = (g: Graph): boolean[] => g.edges.map(isSlow);
  expect(slow(graphOf(answer([40e6, 2e9])))).toEqual([false, true]);
  expect(slow(graphOf(answer([40e6, 2e9]), answer([20e6, 2e9])))).toEqual([true, false]);
  expect(graphOf(answer([40e6, 2e9]), answer([20e6, 2e9])).edges.map((e) => e.usual)).toEqual([20e6, 2e9]);
  expect(slow(graphOf(answer([40e6, 2e9]), answer([20e6, 2e9], 99)))).toEqual([false, true]);
  expect(slow(graphOf(answer([40e6, 2e9], 19), answer([20e6, 2e9])))).toEqual([false, false]);
  expect(slow(graphOf(answer([0.9e6, 2e9]), answer([0.2e6, 2e9])))).toEqual([false, false]);
});
