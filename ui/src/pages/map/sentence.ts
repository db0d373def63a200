// The answer in one sentence, computed from the graph.

import { count, share } from '../../shell/format';
import { serviceLabel } from '../../shell/service';
import { t, tn } from '../../shell/text';
import { isFailing, type Graph, type MapEdge, type MapNode } from './model';

const maxNames = 3;

/** Names, with the number of those left out. */
export function names(list: string[]): string {
  if (list.length <= maxNames) return list.length < 2 ? list.join('') : t('{names} and {last}', { names: list.slice(0, -1).join(', '), last: list.at(-1)! });
  return t('{names} and {n} more', { names: list.slice(0, maxNames - 1).join(', '), n: list.length - maxNames + 1 });
}

const byErrors = (a: MapEdge, b: MapEdge): number => b.errors / b.calls - a.errors / a.calls;

/** What the map shows: which edge fails most, or which service if no edge fails. */
export function mapSentence(g: Graph): string {
  const bad = g.edges.filter((e) => isFailing(e, e.calls)).sort(byErrors);
  const services = tn(g.nodes.length, '{n} service', '{n} services');
  if (bad.length === 0) {
    const [node] = g.nodes.filter((n) => isFailing(n, n.requests)).sort((a, b) => b.errors / b.requests - a.errors / a.requests);
    if (node) return t('{service} fails {share} of its requests; no edge fails', { service: serviceLabel(node.name), share: share(node.errors / node.requests) });
    return tn(g.edges.length, '{services}, {n} edge, none failing', '{services}, {n} edges, none failing', { services });
  }
  const [worst] = bad;
  const edge = `${serviceLabel(g.nodes[worst.from].name)} › ${serviceLabel(g.nodes[worst.to].name)}`;
  return tn(bad.length, '{n} of {edges} edges fails: {edge}, {share} of its calls', '{n} of {edges} edges fail, most of all {edge}: {share} of its calls', {
    n: count(bad.length), edges: count(g.edges.length), edge, share: share(worst.errors / worst.calls),
  });
}

/** Who calls a service, and which of the callers see errors. */
export function callerSentence(g: Graph, node: MapNode): string {
  const callers = g.edges.filter((e) => g.nodes[e.to].name === node.name && e.from !== e.to);
  const name = (e: MapEdge): string => serviceLabel(g.nodes[e.from].name);
  if (callers.length === 0) return t('No service calls it.');
  const bad = callers.filter((e) => isFailing(e, e.calls)).sort(byErrors);
  const called = t('Called by {names}.', { names: names([...callers].sort((a, b) => b.calls - a.calls).map(name)) });
  if (bad.length === 0) return called + ' ' + t('Their calls succeed.');
  const seen = names(bad.map((e) => `${name(e)} (${share(e.errors / e.calls)})`));
  return called + ' ' + (bad.length === callers.length ? t('Errors are seen by {names}.', { names: seen }) : t('Errors are seen only by {names}.', { names: seen }));
}
