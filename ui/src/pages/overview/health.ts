// Which services differ from the usual, and how much. Pure functions on the answer of `services`.

import type { Red, Services, ServiceSeries } from '../../api/types';
import { millis } from '../../shell/format';

/** State of a service, worst first. */
export type ServiceState = 'failing' | 'silent' | 'slow' | 'normal';

/** A service with what the page says about it. */
export interface ServiceHealth {
  name: string;
  inferred: boolean;
  state: ServiceState;
  series: ServiceSeries;
  /** Requests per second in the range. */
  rate: number;
  /** Share of failed requests, 0 without requests. */
  errorShare: number;
  /** Usual share, or null if nothing is known. */
  usualErrorShare: number | null;
  /** p95 divided by the usual p95, or null. */
  slowdown: number | null;
  /** Time in milliseconds since the epoch at which the errors rose or the requests stopped, or null. */
  since: number | null;
}

/** Seconds of the range, and of the usual period as far as it has data. */
export interface Periods {
  range: number;
  usual: number;
}

const minCalls = 20; // fewer say nothing
const minErrors = 5;
const minErrorShare = 0.01;
const errorFactor = 2;
const alwaysFailing = 0.25; // failing even if usual
const slowFactor = 1.5;
const minUsualCoverage = 0.2; // of the range; a shorter usual period is not compared
const minSigma = 3;
const minSilentSteps = 5;
const minSilentShare = 0.2; // of the range

/**
 * Lengths of the periods. `oldest` is when the oldest stored span arrived, or "". If that is after the usual period although it has requests, they
 * were sent later, and say nothing about its length.
 */
export function periods(s: Pick<Services, 'start' | 'end' | 'usualStart' | 'total'>, oldest: string): Periods {
  const [start, end] = [millis(s.start), millis(s.end)];
  const sentLater = oldest !== '' && millis(oldest) >= start && (s.total.usual?.calls ?? 0) > 0;
  const usualStart = Math.max(millis(s.usualStart), oldest && !sentLater ? millis(oldest) : 0);
  return { range: Math.max(0.001, (end - start) / 1000), usual: Math.max(0, (start - usualStart) / 1000) };
}

/** Share of failed calls. */
export function errorShare(r: Red | null): number {
  return r && r.calls > 0 ? r.errors / r.calls : 0;
}

/** The usual period, or null if it is too short to compare with. */
export function usualOf(s: ServiceSeries, p: Periods): Red | null {
  return s.usual && p.usual >= p.range * minUsualCoverage ? s.usual : null;
}

/** Whether the usual is known of a service. */
export function isCompared(answer: Services, p: Periods): boolean {
  return answer.services.some((s) => usualOf(s, p) !== null);
}

/** Judges all services, most abnormal first. */
export function judge(answer: Services, p: Periods): ServiceHealth[] {
  // If all requests stopped, that is one fact, not one about each service.
  const someRequests = silentSince(answer.total, answer) === null;
  return answer.services.map((s) => judgeOne(s, answer, p, someRequests)).sort(isCompared(answer, p) ? byAbnormality : byErrorsAndDuration);
}

function judgeOne(s: Services['services'][number], answer: Services, p: Periods, findSilent: boolean): ServiceHealth {
  const usual = usualOf(s, p);
  const failing = isFailing(s.summary, usual);
  const factor = slowdown(s.summary, usual);
  const stopped = findSilent ? silentSince(s, answer) : null;
  const silent = findSilent && (stopped !== null || (usual !== null && s.summary.calls === 0 && usual.calls >= minCalls));
  return {
    name: s.name, inferred: s.inferred, series: s,
    state: failing ? 'failing' : silent ? 'silent' : factor !== null && factor >= slowFactor ? 'slow' : 'normal',
    rate: s.summary.calls / p.range,
    errorShare: errorShare(s.summary),
    usualErrorShare: usual && usual.calls > 0 ? errorShare(usual) : null,
    slowdown: factor,
    since: failing ? onset(s, answer, usual) : stopped,
  };
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

/** More errors than usual, beyond chance; or very many. */
export function isFailing(now: Red, usual: Red | null): boolean {
  const share = errorShare(now);
  if (now.errors < minErrors || share < minErrorShare) return false;
  if (share >= alwaysFailing) return true;
  if (!usual || usual.calls < minCalls) return false;
  const before = errorShare(usual);
  const pooled = (now.errors + usual.errors) / (now.calls + usual.calls);
  const deviation = Math.sqrt(pooled * (1 - pooled) * (1 / now.calls + 1 / usual.calls));
  return share >= before * errorFactor && share - before >= minSigma * deviation;
}

/** p95 relative to the usual, or null if there are too few calls. */
export function slowdown(now: Red, usual: Red | null): number | null {
  if (!usual || now.calls < minCalls || usual.calls < minCalls || !now.p95 || !usual.p95) return null;
  return now.p95 / usual.p95;
}

/** Beginning of the first step from which at least two thirds of the steps have more errors than halfway between usual and now. */
function onset(s: ServiceSeries, answer: Services, usual: Red | null): number | null {
  const shares = s.calls.map((c, i) => (c > 0 ? s.errors[i] / c : null));
  const peak = Math.max(...shares.map((x) => x ?? 0));
  const threshold = (errorShare(usual) + Math.min(peak, errorShare(s.summary) * 1.5)) / 2;
  const high = shares.map((x) => x !== null && x >= threshold);
  for (let i = 0; i < high.length; i++) {
    const rest = shares.slice(i).filter((x) => x !== null).length;
    if (!high[i] || high.slice(i).filter(Boolean).length < (rest * 2) / 3) continue;
    // High from the very beginning: the rise was earlier.
    return i === 0 ? null : millis(answer.start) + (i * answer.step) / 1e6;
  }
  return null;
}

const rank: Record<ServiceState, number> = { failing: 0, silent: 1, slow: 2, normal: 3 };

/** Number of errors beyond the usual. */
function excess(h: ServiceHealth): number {
  return h.series.summary.errors - (h.usualErrorShare ?? 0) * h.series.summary.calls;
}

function byAbnormality(a: ServiceHealth, b: ServiceHealth): number {
  if (a.state !== b.state) return rank[a.state] - rank[b.state];
  if (a.state === 'failing') return excess(b) - excess(a) || b.errorShare - a.errorShare;
  if (a.state === 'slow') return b.slowdown! - a.slowdown!;
  if (a.inferred !== b.inferred) return a.inferred ? 1 : -1;
  return b.series.summary.calls - a.series.summary.calls || (b.series.usual?.calls ?? 0) - (a.series.usual?.calls ?? 0) || (a.name < b.name ? -1 : 1);
}

/** Order if nothing is known about the usual: by share of errors, then by duration. Few errors or calls say nothing. */
function byErrorsAndDuration(a: ServiceHealth, b: ServiceHealth): number {
  const errors = (h: ServiceHealth): number => (h.series.summary.errors < minErrors ? 0 : h.errorShare);
  const p95 = (h: ServiceHealth): number => (h.series.summary.calls < minCalls ? 0 : h.series.summary.p95 ?? 0);
  if (a.state !== b.state) return rank[a.state] - rank[b.state];
  if (a.inferred !== b.inferred) return a.inferred ? 1 : -1;
  return errors(b) - errors(a) || p95(b) - p95(a) || (a.name < b.name ? -1 : 1);
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
