// What the spans of a service say about it. Pure functions on the answer of `service`.

import type { OneService, OperationSeries, RoleName, ServiceRole } from '../../api/service';
import type { Services, ServiceSeries } from '../../api/types';
import { t } from '../../shell/text';

/** Whether something happened in the range, or in the time before it. */
export function used(s: ServiceSeries): boolean {
  return s.summary.calls > 0 || s.usual !== null;
}

/** The role that stands for the service: its requests; without requests, its calls; then its internal spans. Null without spans. */
export function mainRole(s: OneService): ServiceRole | null {
  return s.roles.find((r) => used(r.total)) ?? null;
}

/** The spans of a role. */
export function roleOf(s: OneService, name: RoleName): ServiceRole {
  return s.roles.find((r) => r.role === name)!;
}

/** The role of a name in the URL, if the service has such spans. */
export function roleOfKind(s: OneService, kind: string): ServiceRole | undefined {
  return s.roles.find((r) => r.role === kind && used(r.total));
}

/** The answer as one of `services`, for the parts that both pages share. */
export function asServices(s: OneService, name: string, role: ServiceRole): Services {
  return { ...s, total: role.total, services: [{ ...role.total, name, inferred: false }] };
}

/** What is missing, and what to do about it; null if there are requests. */
export function missingKind(s: OneService): { what: string; advice: string } | null {
  const main = mainRole(s);
  if (!main || main.role === 'requests') return null;
  const calls = used(roleOf(s, 'calls').total);
  const internal = used(roleOf(s, 'internal').total);
  const only = calls && internal ? t('only client, producer and internal spans') : calls ? t('only client and producer spans') : t('only internal spans');
  return {
    what: t('No requests: this service sends {kinds}. Requests are spans of kind server or consumer.', { kinds: only }),
    advice: calls
      ? t('Enable instrumentation for this service\'s server or message consumer, or set the kind of the spans that handle requests to SERVER or CONSUMER. A service that only calls others has no such spans.')
      : t('When you start the spans that handle requests, set their kind to SERVER or CONSUMER. Instrumentation libraries for servers do this; spans started by hand have kind INTERNAL.'),
  };
}

/** Share of the time of a role that an operation takes, from 0 to 1. */
export function timeShare(o: OperationSeries, role: ServiceRole): number {
  return role.total.time > 0 ? Math.min(1, o.time / role.total.time) : 0;
}

/** The operation to look at first: the marked one, otherwise the one that takes most time. */
export function markedOperation(s: OneService, name: string): { role: ServiceRole; operation: OperationSeries } | null {
  for (const role of s.roles) {
    const operation = role.operations.find((o) => o.name === name);
    if (operation) return { role, operation };
  }
  const role = mainRole(s);
  return role && role.operations.length > 0 ? { role, operation: role.operations[0] } : null;
}
