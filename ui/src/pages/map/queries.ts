// Searches for the calls of an edge.

import type { MapEdge, MapNode } from './model';

/** An end of an edge. */
type End = Pick<MapNode, 'name' | 'peer' | 'connection'>;

const text = JSON.stringify;

/** Attributes that name a system without spans of its own, by type of connection. */
const peerFields: Record<string, string[]> = {
  database: ['.db.system.name', '.db.system', '.peer.service'],
  messaging: ['.messaging.system', '.peer.service'],
  '': ['.peer.service', '.db.system.name', '.db.system', '.messaging.system', '.server.address', '.net.peer.name'],
};

/** Search for the traces with calls of an edge; `more` is a condition of the called span, or of the calling one for peers. */
export function edgeQuery(parent: Pick<End, 'name'>, child: End, more = ''): string {
  const and = more && ` && ${more}`;
  if (!child.peer) return `{ service = ${text(parent.name)} } > { service = ${text(child.name)}${and} }`;
  const fields = peerFields[child.connection] ?? ['.peer.service', '.server.address', '.net.peer.name'];
  return `{ service = ${text(parent.name)} && (${fields.map((f) => `${f} = ${text(child.name)}`).join(' || ')})${and} }`;
}

/** Condition for calls at least as slow as the p95 of an edge. */
export function slowest(e: MapEdge): string {
  return e.p95 === null ? '' : `duration >= ${Math.floor(e.p95 / 1000)}us`;
}

/** Search for the traces of a service. */
export function serviceQuery(name: string, more = ''): string {
  return `{ service = ${text(name)}${more && ` && ${more}`} }`;
}
