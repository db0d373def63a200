// Services with what the page says about them, and their order. What is usual, and which service is worse, says the server.

import type { Incidents } from '../../api/incidents';
import type { Incident, Red, Services, ServiceSeries } from '../../api/types';
import { errorShare } from '../../incidents/words';
import { slowNow } from '../../shell/clock';
import { millis, time } from '../../shell/format';
import { zone } from '../../shell/preferences';
import { t } from '../../shell/text';
import { lowerFirst, rangeName } from '../../shell/time-input';
import { view } from '../../shell/url';

/** State of a service, worst first. An incident that has `ended` is over. */
export type ServiceState = 'failing' | 'silent' | 'slow' | 'ended' | 'normal';

/** A service with what the page says about it. */
export interface ServiceHealth {
  name: string;
  inferred: boolean;
  state: ServiceState;
  series: ServiceSeries;
  /** What `rate`, `errorShare` and `slowdown` are of. */
  figures: Red;
  /** Requests per second. */
  rate: number;
  /** Share of failed requests, 0 without requests. */
  errorShare: number;
  /** p95 divided by the usual p95, or null. */
  slowdown: number | null;
  /** Time in milliseconds since the epoch at which the incident began or the requests stopped, or null. */
  since: number | null;
}

const minCalls = 20; // fewer say nothing
const minSilentSteps = 5;
const minSilentShare = 0.2; // of the range

/** The services of each incident in its order, the source first. */
export function inOrderOf(services: ServiceHealth[], incidents: Incidents | undefined): ServiceHealth[] {
  const names = incidents?.incidents.flatMap((i) => [i.source.name, ...i.reached.map((s) => s.name)]) ?? [];
  const place = (s: ServiceHealth): number => (names.includes(s.name) ? names.indexOf(s.name) : names.length);
  return [...services].sort((a, b) => rank[a.state] - rank[b.state] || place(a) - place(b));
}

/** Length of the range in seconds. */
export function secondsOf(s: Pick<Services, 'start' | 'end'>): number {
  return Math.max(0.001, (millis(s.end) - millis(s.start)) / 1000);
}

/** The calls that numbers are of: since the start of the incident that goes on, otherwise of the range. */
export function figuresOf(s: Pick<ServiceSeries, 'since' | 'summary'>): Red {
  return s.since ?? s.summary;
}

/** The time of these calls, for people: "since 14:06", or "last 1 hour". */
export function figuresText(s: Pick<ServiceSeries, 'since'>, { end }: Pick<Services, 'end'>): string {
  if (s.since) return t('since {time}', { time: time(millis(s.since.start), zone.value, millis(end), 0) });
  return lowerFirst(rangeName(view.value.range, zone.value, slowNow.value));
}

/** Time in seconds of these calls. */
export function figuresSeconds(s: Pick<ServiceSeries, 'since'>, range: Pick<Services, 'start' | 'end'>): number {
  return secondsOf({ start: s.since?.start ?? range.start, end: range.end });
}

/** Usual calls per second, or null. */
export function usualRate(s: Pick<ServiceSeries, 'usual'>): number | null {
  return s.usual ? s.usual.calls / (s.usual.quiet / 1e9) : null;
}

/** Whether the usual is known of a service. */
export function isCompared(answer: Services): boolean {
  return answer.services.some((s) => s.usual !== null);
}

/** Whether the errors of a service are or were above the usual. */
export function hadErrors(s: Pick<ServiceSeries, 'incident'>): boolean {
  return s.incident?.kind === 'errors';
}

/** Whether the errors of a service are above the usual now. */
export function isFailing(s: Pick<ServiceSeries, 'incident'>): boolean {
  return hadErrors(s) && s.incident!.end === null;
}

/** Judges all services, most abnormal first. */
export function judge(answer: Services): ServiceHealth[] {
  // If all requests stopped, that is one fact, not one about each service.
  const someRequests = silentSince(answer.total, answer) === null;
  return answer.services.map((s) => judgeOne(s, answer, someRequests)).sort(isCompared(answer) ? byAbnormality : byErrorsAndDuration);
}

function judgeOne(s: Services['services'][number], answer: Services, findSilent: boolean): ServiceHealth {
  const stopped = findSilent ? silentSince(s, answer) : null;
  const silent = findSilent && (stopped !== null || (s.summary.calls === 0 && (usualRate(s) ?? 0) * secondsOf(answer) >= minCalls));
  const state = stateOf(s.incident, silent);
  const figures = figuresOf(s);
  return {
    name: s.name, inferred: s.inferred, series: s, state, figures,
    rate: figures.calls / figuresSeconds(s, answer),
    errorShare: errorShare(figures),
    slowdown: slowdown(figures, s.usual),
    since: state === 'silent' ? stopped : s.incident?.start ? millis(s.incident.start) : null,
  };
}

function stateOf(incident: Incident | null, silent: boolean): ServiceState {
  if (incident?.kind === 'errors' && incident.end === null) return 'failing';
  if (silent) return 'silent';
  return incident === null ? 'normal' : incident.end === null ? 'slow' : 'ended';
}

/**
 * Time in milliseconds since the epoch from which on there are no calls, or null. Only if the silence is long (a fifth of the range, five steps),
 * and if at the rate before it at least `minCalls` calls were to be expected.
 */
export function silentSince(s: Pick<ServiceSeries, 'calls'>, answer: Pick<Services, 'start' | 'step'>): number | null {
  const used = s.calls.findLastIndex((c) => c > 0) + 1;
  const silent = s.calls.length - used;
  if (used === 0 || silent < Math.max(minSilentSteps, s.calls.length * minSilentShare)) return null;
  const first = s.calls.findIndex((c) => c > 0);
  const before = s.calls.reduce((a, b) => a + b, 0) / (used - first);
  return before * silent >= minCalls ? millis(answer.start) + (used * answer.step) / 1e6 : null;
}

/** p95 relative to the usual, or null if there are too few calls. */
export function slowdown(now: Red, usual: Red | null): number | null {
  if (!usual || now.calls < minCalls || usual.calls < minCalls || !now.p95 || !usual.p95) return null;
  return now.p95 / usual.p95;
}

const rank: Record<ServiceState, number> = { failing: 0, silent: 1, slow: 2, ended: 3, normal: 4 };

function byName(a: ServiceHealth, b: ServiceHealth): number {
  return a.name < b.name ? -1 : 1;
}

function byAbnormality(a: ServiceHealth, b: ServiceHealth): number {
  if (a.state !== b.state) return rank[a.state] - rank[b.state];
  if (a.state === 'failing' || a.state === 'ended') return b.series.incident!.errors - a.series.incident!.errors || byName(a, b);
  if (a.state === 'slow') return (b.slowdown ?? 0) - (a.slowdown ?? 0) || byName(a, b);
  if (a.inferred !== b.inferred) return a.inferred ? 1 : -1;
  return b.series.summary.calls - a.series.summary.calls || (b.series.usual?.calls ?? 0) - (a.series.usual?.calls ?? 0) || byName(a, b);
}

/** Order if nothing is known about the usual: by the share of errors that the page shows, then by duration. Few calls say nothing about durations. */
function byErrorsAndDuration(a: ServiceHealth, b: ServiceHealth): number {
  const p95 = (h: ServiceHealth): number => (h.series.summary.calls < minCalls ? 0 : h.series.summary.p95 ?? 0);
  return b.errorShare - a.errorShare || Number(a.inferred) - Number(b.inferred) || p95(b) - p95(a) || byName(a, b);
}

/** Calls per second of each step. The last step may have just begun: then it is left out. */
export function rates(calls: number[], answer: Pick<Services, 'start' | 'end' | 'step'>): (number | null)[] {
  const step = answer.step / 1e9;
  const total = (millis(answer.end) - millis(answer.start)) / 1000;
  return calls.map((c, i) => {
    const seconds = Math.min(step, total - i * step);
    return seconds < step / 4 ? null : c / seconds;
  });
}

/** Share of errors of each step; null without calls. */
export function errorShares(s: Pick<ServiceSeries, 'calls' | 'errors'>): (number | null)[] {
  return s.calls.map((c, i) => (c > 0 ? s.errors[i] / c : null));
}
