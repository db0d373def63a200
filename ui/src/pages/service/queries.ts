// Searches that the page of a service links to.

import type { RoleName } from '../../api/service';
import { durationText, round3 } from '../../query/field';

const kinds: Record<RoleName, string> = {
  requests: '(kind = server || kind = consumer)', calls: '(kind = client || kind = producer)', internal: '(kind = internal || kind = unspecified)',
};

/** Spans of a service with further conditions. */
export function spansOf(service: string, ...conditions: string[]): string {
  return `{ ${[`service = ${JSON.stringify(service)}`, ...conditions.filter(Boolean)].join(' && ')} }`;
}

/** Spans of a service in a role. */
export function roleQuery(service: string, role: RoleName, ...conditions: string[]): string {
  return spansOf(service, kinds[role], ...conditions);
}

/** Spans of an operation. */
export function operationQuery(service: string, operation: string, ...conditions: string[]): string {
  return spansOf(service, `name = ${JSON.stringify(operation)}`, ...conditions);
}

/** Spans that take at least a time in nanoseconds, rounded down to three digits. */
export function slower(ns: number): string {
  return `duration >= ${durationText(round3(ns, Math.floor))}`;
}
