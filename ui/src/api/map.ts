// Types of the answers of the route map.

import type { Nanos } from './types';

/** The type of a connection; '' is unknown. */
export type Connection = '' | 'database' | 'messaging' | 'grpc' | 'rpc' | 'http';

/** The services, and the calls between them. Durations are in nanoseconds, and null if unknown. */
export interface ServiceMap {
  start: Nanos;
  /** Exclusive. */
  end: Nanos;
  /** The store measures durations and connections of edges. */
  measured: boolean;
  nodes: MapNodes;
  edges: MapEdges;
}

/** Columns of services and of peers, which have no spans of their own, sorted by name. */
export interface MapNodes {
  name: string[];
  peer: boolean[];
  /** Of peers: how most calls reach it. */
  connection: Connection[];
  /** Server and consumer spans of a service, or all its spans if it has none; of a peer the calls to it. */
  requests: number[];
  errors: number[];
  p95: (number | null)[];
}

/** Columns of the calls between two nodes. */
export interface MapEdges {
  /** Index of a node. */
  parent: number[];
  child: number[];
  calls: number[];
  errors: number[];
  /** Calls with a known duration, from which p50 and p95 are calculated. */
  timed: number[];
  p50: (number | null)[];
  p95: (number | null)[];
  /** The type of most calls comes first. */
  connections: Connection[][];
}
