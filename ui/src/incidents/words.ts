// What is said about an incident: the same words on the overview, the page of a service and the page of a trace.

import type { IncidentVersion } from '../api/incidents';
import type { Incident, Red, Usual } from '../api/types';
import { millis, minutes, percentile, share } from '../shell/format';
import { t } from '../shell/text';

/** Writes a time, in milliseconds since the epoch: of another day than the end of the data with its date. */
export type TimeText = (ms: number) => string;

const sameTime = 180_000; // milliseconds between the start of an incident and that of a version

/** Share of failed calls, 0 without calls. */
export function errorShare(r: Pick<Red, 'calls' | 'errors'> | null): number {
  return r && r.calls > 0 ? r.errors / r.calls : 0;
}

/** What a service does in an incident: "fails 33.5 % of requests, usually 0.2 %, since 14:06 when version 2.14.0 appeared". */
export function incidentText(i: Incident, usual: Usual | null, at: TimeText, version: IncidentVersion | null = null): string {
  const values = { share: share(errorShare(i)), p95: percentile(i.p95 ?? 0), usual: usually(i, usual), time: timeText(i, at, version) };
  if (i.end !== null) return i.kind === 'errors' ? t('failed {share} of requests{usual}{time}', values) : t('was slow: p95 {p95}{usual}{time}', values);
  return i.kind === 'errors' ? t('fails {share} of requests{usual}{time}', values) : t('is slow: p95 {p95}{usual}{time}', values);
}

function usually({ kind }: Incident, usual: Usual | null): string {
  if (!usual) return '';
  return t(', usually {usual}', { usual: kind === 'errors' ? share(errorShare(usual)) : percentile(usual.p95 ?? 0) });
}

function timeText({ start, end }: Incident, at: TimeText, version: IncidentVersion | null): string {
  if (start === null) return '';
  const from = millis(start);
  const when = end === null ? t(', since {since}', { since: at(from) }) : t(', ended {time} after {length}', { time: at(millis(end)), length: minutes((millis(end) - from) * 1e6) });
  return when + (version ? versionText(version, from, end === null, at) : '');
}

function versionText({ to, at: appeared }: IncidentVersion, from: number, open: boolean, at: TimeText): string {
  const near = Math.abs(millis(appeared) - from) <= sameTime;
  if (near && open) return t(' when version {to} appeared', { to });
  return near ? t('; it began when version {to} appeared', { to }) : t('; version {to} appeared at {time}', { to, time: at(millis(appeared)) });
}

/** What is bad about a service in a list of several: "9.4 %", or "p95 1.24 s". */
export function badText(i: Incident): string {
  return i.kind === 'errors' ? share(errorShare(i)) : t('p95 {p95}', { p95: percentile(i.p95 ?? 0) });
}
