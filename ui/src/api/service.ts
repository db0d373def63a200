// Types of the answer of the route service.

import type { Nanos, ServiceSeries } from './types';

/** Spans of one service. Times and steps are as in Services. */
export interface OneService {
  start: Nanos;
  end: Nanos;
  usualStart: Nanos;
  step: number;
  points: number;
  /** Requests (server and consumer spans), calls of others (client and producer spans), and internal spans, in this order. */
  roles: ServiceRole[];
}

/** What spans of a service do. */
export type RoleName = 'requests' | 'calls' | 'internal';

/** The spans of a service in one role. */
export interface ServiceRole {
  role: RoleName;
  total: OperationSeries;
  /** The operations that take most time, in this order. */
  operations: OperationSeries[];
  /** Operations that are not listed. */
  omitted: number;
}

/** An operation. `time` is the sum of the durations in the range, in nanoseconds. */
export type OperationSeries = ServiceSeries & { name: string; time: number };
