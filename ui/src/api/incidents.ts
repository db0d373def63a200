// Answers of /api/ui/v1/incidents, checked against the golden files of extensions/query/internal/uiapi.

import type { Incident, Nanos, Red, Usual } from './types';

/** `incidents`: incidents of the range, those that go on first, then the latest. A service can have several. */
export interface Incidents {
  incidents: SystemIncident[];
  /** Further ones. */
  omitted: number;
}

/** The incident of a service with those of the services that depend on it. */
export interface SystemIncident {
  source: AffectedService;
  /** Those that call the source first; then slow ones with the same callers. */
  reached: AffectedService[];
  version: IncidentVersion | null;
  /** Null if they are not known. */
  roots: RootRequests | null;
  /** The most frequent errors in the traces of failed requests, the innermost first. */
  errors: IncidentError[];
  /** Traces in which errors were counted. */
  examined: number;
  /** Of the newest bad request of the source, or "". */
  traceID: string;
  spanID: string;
}

/** A service with its incident. */
export interface AffectedService extends Incident {
  name: string;
  /** It has no requests: all its spans count. */
  allSpans: boolean;
  usual: Usual | null;
}

/** The version of the source that appeared with the incident. */
export interface IncidentVersion {
  /** The most frequent one before, or "". */
  from: string;
  to: string;
  at: Nanos;
  of: VersionCounts;
  others: VersionCounts;
}

/** Requests of one version, or of one operation. */
export interface VersionCounts {
  calls: number;
  errors: number;
}

/** Requests that begin traces, of the services that begin those with bad requests: what users see. */
export interface RootRequests extends Red {
  services: string[];
  /** Of the spans that was examined; numbers are estimates if it is below 1. */
  share: number;
  /** In quiet time before the incident, or null. */
  usual: Red | null;
  /** The one that begins the most of these traces. */
  operation: string;
  of: VersionCounts;
}

/** An error that occurs in the traces of an incident. */
export interface IncidentError {
  service: string;
  /** Type, or message without its variable parts, or "". */
  title: string;
  /** Of the outermost span. */
  operation: string;
  /** Of the examined ones. */
  traces: number;
  /** Most of these spans have failed spans below them. */
  follows: boolean;
}
