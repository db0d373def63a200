import { incidentText, type TimeText } from '../../incidents/words';
import { fixed, share } from '../../shell/format';
import { serviceLabel } from '../../shell/service';
import { t } from '../../shell/text';
import type { ServiceHealth } from './health';

/** The answer of the page to "is anything broken now?". */
export interface Sentence {
  text: string;
  /** What is said about each service that is not as usual, worst first. */
  details: Detail[];
}

/** What is said about a service: "payment" + "fails 6.4 % of requests, usually 0.2 %, since 14:06". */
export interface Detail {
  service: ServiceHealth;
  text: string;
}

/** What the sentence depends on, beside the services. */
export interface SentenceContext {
  comparable: boolean;
  /** Share of failed requests of all services together. */
  errorShare: number;
  at: TimeText;
  /** Time from which on no service has requests, or null. */
  silentSince: number | null;
}

/** Computes the sentence from judged services. */
export function overviewSentence(services: ServiceHealth[], context: SentenceContext): Sentence {
  const { at } = context;
  const of = (state: ServiceHealth['state']): ServiceHealth[] => services.filter((s) => s.state === state);
  const [failing, silent, slow, ended] = [of('failing'), of('silent'), of('slow'), of('ended')];
  const abnormal = [...failing, ...silent, ...slow, ...ended];
  const stopped = context.silentSince === null ? '' : t('No requests since {silentSince}', { silentSince: at(context.silentSince) });
  if (abnormal.length === 0) return { text: stopped || calm(services, context), details: [] };
  const total = services.length;
  const parts: string[] = stopped ? [stopped] : [];
  const add = (list: ServiceHealth[], one: string, many: string): void => {
    if (list.length === 0) return;
    const subject = parts.length === 0 || stopped || list === ended ? (total === 1 ? serviceLabel(list[0].name) : t('{list} of {total} services', { list: list.length, total })) : String(list.length);
    parts.push(`${subject} ${list.length === 1 ? one : many}`);
  };
  add(failing, t('is failing'), t('are failing'));
  add(silent, t('no longer gets requests'), t('no longer get requests'));
  add(slow, t('is slower than usual'), t('are slower than usual'));
  if (parts.length === 0) parts.push(t('Nothing unusual now'));
  add(ended, t('has recovered'), t('have recovered'));
  return { text: parts.join(', '), details: abnormal.map((service) => ({ service, text: describe(service, at) })) };
}

function calm(services: ServiceHealth[], { comparable, errorShare }: SentenceContext): string {
  const active = services.filter((s) => s.series.summary.calls > 0);
  const noun = active.length === 1 ? active[0]?.name : t('{active} services', { active: active.length });
  if (active.length === 0) return t('No requests in this time range');
  if (comparable) return t('Nothing unusual in {noun}', { noun });
  return errorShare === 0 ? t('No errors in {noun}', { noun }) : t('{errorShare} of the requests to {noun} failed', { errorShare: share(errorShare), noun });
}

function describe({ series: { incident, usual }, since, state }: ServiceHealth, at: TimeText): string {
  if (state === 'silent' || !incident) return since === null ? t('no longer gets requests') : t('has had no requests since {since}', { since: at(since) });
  return incidentText(incident, usual, at);
}

/** A factor against the usual: `4.9×`. */
export function factor(x: number): string {
  return `${x < 9.95 ? fixed(x, 1) : Math.round(x)}×`;
}
