import type { Change } from '../../api/types';
import { millis, minutes, share } from '../../shell/format';
import { t } from '../../shell/text';
import { errorShare, slowdownOf, type ServiceHealth } from './health';

/** The answer of the page to "is anything broken now?". */
export interface Sentence {
  text: string;
  /** The services that the second line describes, worst first. */
  details: Detail[];
}

/** What is said about a service: "payment" + "fails 6.4 % of requests, usually 0.2 %, since 14:06 when version 2.14.0 appeared". */
export interface Detail {
  service: ServiceHealth;
  text: string;
}

/** Writes a time, in milliseconds since the epoch: of another day than the end of the data with its date. */
export type TimeText = (ms: number) => string;

const maxDetails = 4;
const changeDistance = 120_000; // milliseconds between the rise of errors and a new version

/** What the sentence depends on, beside the services. */
export interface SentenceContext {
  comparable: boolean;
  changes: Change[];
  /** Share of failed requests of all services together. */
  errorShare: number;
  /** For example "the last 1 hour". */
  period: string;
  at: TimeText;
  /** Time from which on no service has requests, or null. */
  silentSince: number | null;
}

/** Computes the sentence from judged services. */
export function overviewSentence(services: ServiceHealth[], context: SentenceContext): Sentence {
  const { changes, at } = context;
  const of = (state: ServiceHealth['state']): ServiceHealth[] => services.filter((s) => s.state === state);
  const [failing, silent, slow, ended] = [of('failing'), of('silent'), of('slow'), of('ended')];
  const abnormal = [...failing, ...silent, ...slow, ...ended];
  const stopped = context.silentSince === null ? '' : t('No requests since {silentSince}', { silentSince: at(context.silentSince) });
  if (abnormal.length === 0) return { text: stopped || calm(services, context), details: [] };
  const total = services.length;
  const parts: string[] = stopped ? [stopped] : [];
  const add = (list: ServiceHealth[], one: string, many: string): void => {
    if (list.length === 0) return;
    const subject = parts.length === 0 || stopped || list === ended ? (total === 1 ? list[0].name : t('{list} of {total} services', { list: list.length, total })) : String(list.length);
    parts.push(`${subject} ${list.length === 1 ? one : many}`);
  };
  add(failing, t('is failing'), t('are failing'));
  add(silent, t('gets no requests any more'), t('get no requests any more'));
  add(slow, t('is slower than usual'), t('are slower than usual'));
  if (parts.length === 0) parts.push(t('Nothing unusual now'));
  add(ended, t('has recovered'), t('have recovered'));
  return { text: parts.join(', '), details: suspectsFirst(abnormal, changes).slice(0, maxDetails).map((service) => ({ service, text: describe(service, changes, at) })) };
}

function calm(services: ServiceHealth[], { comparable, errorShare, period }: SentenceContext): string {
  const active = services.filter((s) => s.series.summary.calls > 0);
  const noun = active.length === 1 ? active[0]?.name : t('{active} services', { active: active.length });
  if (active.length === 0) return t('No requests in {period}', { period });
  if (comparable) return t('Nothing unusual in {noun}', { noun });
  return errorShare === 0 ? t('No errors in {noun}', { noun }) : t('{errorShare} of the requests to {noun} failed', { errorShare: share(errorShare), noun });
}

function describe(s: ServiceHealth, changes: Change[], at: TimeText): string {
  switch (s.state) {
    case 'failing': return t('fails {errorShare} of requests{usualErrorShare}{s}', { errorShare: share(errorShare(s.series.incident)), usualErrorShare: usually(s), s: since(s, changes, at) });
    case 'silent': return (s.since === null ? t('gets no requests any more') : t('has had no requests since {since}', { since: at(s.since) }));
    case 'slow': return t('has {slowdown} its usual p95{s}', { slowdown: factor(slowdownOf(s)), s: since(s, changes, at) });
    case 'ended': return endedText(s, at);
    default: return '';
  }
}

function usually(s: ServiceHealth): string {
  return s.usualErrorShare === null ? '' : t(', usually {usualErrorShare}', { usualErrorShare: share(s.usualErrorShare) });
}

/** What a service did in an incident that is over, and when that ended. */
export function endedText(s: ServiceHealth, at: TimeText): string {
  const incident = s.series.incident!;
  const [from, to] = [millis(incident.start!), millis(incident.end!)];
  const over = t(', ended {time} after {length}', { time: at(to), length: minutes((to - from) * 1e6) });
  return incident.kind === 'errors'
    ? t('failed {errorShare} of requests{usualErrorShare}{over}', { errorShare: share(errorShare(incident)), usualErrorShare: usually(s), over })
    : t('had {slowdown} its usual p95{over}', { slowdown: factor(slowdownOf(s)), over });
}

/** The version of a service that appeared when its errors rose. */
function suspect(s: ServiceHealth, changes: Change[]): Change | undefined {
  return changes.find((c) => c.kind === 'version' && c.service === s.name && s.since !== null && Math.abs(millis(c.at) - s.since) <= changeDistance);
}

/** Services that fail since they have a new version are before those that may only depend on them. */
function suspectsFirst(abnormal: ServiceHealth[], changes: Change[]): ServiceHealth[] {
  const suspected = (s: ServiceHealth): boolean => s.state === 'failing' && suspect(s, changes) !== undefined;
  return [...abnormal.filter(suspected), ...abnormal.filter((s) => !suspected(s))];
}

function since(s: ServiceHealth, changes: Change[], at: TimeText): string {
  if (s.since === null) return '';
  const version = suspect(s, changes);
  return t(', since {since}{version}', { since: at(s.since), version: version ? t(' when version {to} appeared', { to: version.to }) : '' });
}

/** A factor against the usual: `4.9×`. */
export function factor(x: number): string {
  return `${x < 9.95 ? x.toFixed(1) : Math.round(x)}×`;
}
