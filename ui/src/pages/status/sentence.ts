import type { Details, Processes } from '../../api/deployment';
import type { MarkKind } from '../../shell/icons';
import { count } from '../../shell/format';
import { t, tn } from '../../shell/text';

/** A sentence, and the state that its mark shows. */
export interface Sentence {
  text: string;
  mark: MarkKind | null;
}

/** Sums over the processes that answered. */
interface Sums {
  receives: boolean;
  received: number;
  refused: number;
  refusedRequests: number;
  lost: number;
}

/** The sentence of the status page. `rate` is in spans per second over all processes, null if not known yet. */
export function statusSentence({ processes, hidden }: Processes<Details>, rate: number | null): Sentence {
  const known = processes.filter((p) => p.data !== null).map((p) => p.data!);
  const silent = processes.length - known.length;
  if (silent > 0) return { text: tn(silent, '{n} of {all} processes does not respond', '{n} of {all} processes do not respond', { all: processes.length }), mark: 'warn' };
  const bad = degraded(known);
  if (hidden) return bad ? { text: t('Degraded: {component}', bad), mark: 'warn' } : { text: t('All components work; counters across tenants are not shown to tenants'), mark: 'ok' };
  if (bad) return { text: t('Degraded: {component}: {reason}', bad), mark: 'warn' };
  return counters(sums(known), rate);
}

/** The first component that is degraded, or a reload that failed. */
function degraded(known: Details[]): { component: string; reason: string } | null {
  for (const { report } of known) {
    for (const c of [...report.pipelines.flatMap((p) => p.components), ...report.beside]) {
      if (c.status !== 'ok') return { component: c.component, reason: c.reason ?? c.status };
    }
    if (report.configuration.problem) return { component: t('configuration'), reason: report.configuration.problem };
  }
  return null;
}

function sums(known: Details[]): Sums {
  const all: Sums = { receives: false, received: 0, refused: 0, refusedRequests: 0, lost: 0 };
  for (const d of known) {
    for (const r of d.intake.receivers ?? []) {
      all.receives = true;
      all.received += r.received;
      all.refused += r.refused;
      all.refusedRequests += r.refusedRequests;
    }
    all.lost += d.intake.dropped;
  }
  return all;
}

function counters(s: Sums, rate: number | null): Sentence {
  if (!s.receives) return { text: t('This process answers queries and receives no spans'), mark: null };
  const problems: string[] = [];
  if (s.lost > 0) problems.push(tn(s.lost, '{n} span lost', '{n} spans lost', { n: count(s.lost) }));
  if (s.refused > 0) problems.push(tn(s.refused, '{n} span refused', '{n} spans refused', { n: count(s.refused) }));
  if (s.refusedRequests > 0) problems.push(tn(s.refusedRequests, '{n} request refused', '{n} requests refused', { n: count(s.refusedRequests) }));
  if (problems.length > 0) return { text: tn(s.received, '{problems}; {received} span received', '{problems}; {received} spans received', { problems: problems.join(', '), received: count(s.received) }), mark: 'warn' };
  if (s.received === 0) return { text: t('No span received since the start'), mark: null };
  if (rate === null) return { text: t('Healthy: nothing refused, nothing lost'), mark: 'ok' };
  if (rate < 0.5) return { text: t('Healthy and idle: no spans at the moment'), mark: 'ok' };
  return { text: t('Healthy: {rate} spans/s received, none refused or lost', { rate: count(rate) }), mark: 'ok' };
}
