// Service maps of any size for tests and measurements: services in layers, databases and hosts, some errors, slow edges and cycles.

import type { Connection, ServiceMap } from '../../src/api/map';

const teams = ['shop', 'search', 'billing', 'identity', 'delivery', 'media', 'ads', 'support', 'data', 'platform', 'mobile', 'partner', 'risk', 'catalog', 'pricing'];

/** A service map with `n` nodes, always the same. Without `prefixes`, names have nothing in common. */
export function generate(n: number, { prefixes = true, end = 1_700_000_000_000 } = {}): ServiceMap {
  let state = 12345;
  const random = (below: number): number => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % below;
  };
  const peers = Math.max(2, Math.floor(n / 12));
  const services = n - peers;
  const name = (i: number): string => (i >= services ? `${['postgresql', 'redis', 'kafka', 'api.example.org'][i % 4]}${prefixes ? '-' : ''}${i - services}` : prefixes ? `${teams[Math.floor((i / services) * Math.max(2, Math.min(teams.length, Math.ceil(n / 20))))]}-${i}` : `s${i}`);
  const edges = new Map<string, [number, number]>();
  const call = (from: number, to: number): void => {
    if (to < n && from !== to) edges.set(`${from} ${to}`, [from, to]);
  };
  for (let i = 1; i < services; i++) call(Math.floor(((i - 1) / services) ** 1.15 * services * 0.6), i); // each has a caller
  for (let i = 0; i < services; i++) {
    for (let k = random(3); k > 0; k--) call(i, Math.min(services - 1, i + 1 + random(Math.max(4, services >> 4))));
    if (random(2) === 0) call(i, services + random(peers));
    if (random(40) === 0 && i > 2) call(i, i - 2); // a cycle
  }
  for (let i = services; i < n; i++) call(random(services), i);
  const all = [...edges.values()].sort(([a, b], [c, d]) => a - c || b - d);
  const calls = all.map(() => 3 * 10 ** (1 + random(5)) * (1 + random(9)));
  const errors = calls.map((c) => (random(25) === 0 ? Math.ceil(c / (8 + random(40))) : 0));
  const p95 = calls.map(() => 10 ** (6 + random(3)) * (1 + random(14)));
  const kinds: Connection[] = ['database', 'database', 'messaging', 'http'];
  const nodes = Array.from({ length: n }, (_, i) => i);
  const into = (values: number[], i: number): number => all.reduce((sum, [, to], k) => (to === i ? sum + values[k] : sum), 0);
  return {
    start: String(end - 3_600_000) + '000000', end: String(end) + '000000', measured: true,
    nodes: {
      name: nodes.map(name), peer: nodes.map((i) => i >= services), connection: nodes.map((i) => (i >= services ? kinds[i % 4] : '')),
      requests: nodes.map((i) => into(calls, i) || 36_000), errors: nodes.map((i) => into(errors, i)), p95: nodes.map((i) => 5e6 * (1 + (i % 50))),
    },
    edges: {
      parent: all.map(([a]) => a), child: all.map(([, b]) => b), calls, errors, timed: calls, p50: p95.map((d) => d / 4), p95,
      connections: all.map(([, b], i) => [b >= services ? kinds[b % 4] : i % 3 === 0 ? 'http' : 'grpc']),
    },
  };
}
