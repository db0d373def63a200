// The state of a service in one sentence.

import type { OneService, OperationSeries } from '../../api/service';
import type { Change } from '../../api/types';
import { duration, millis, share } from '../../shell/format';
import { t } from '../../shell/text';
import { errorShare, slowdownOf, type ServiceHealth } from '../overview/health';
import { endedText, factor, type TimeText } from '../overview/sentence';
import { operationQuery } from './queries';
import { roleOf } from './roles';

const near = 3 * 60_000; // between a new version and the begin of failures

/** The sentence and how bad it is. */
export interface ServiceSentence {
  mark: 'error' | 'warn' | 'partial' | 'ok' | '';
  text: string;
}

/** Computes the sentence. `stopped` is the time of the last request if there are none any more. */
export function serviceSentence(h: ServiceHealth, stopped: number | null, changes: Change[], at: TimeText): ServiceSentence {
  const { summary } = h.series;
  if (h.state === 'failing') return { mark: 'error', text: failingText(h, changes, at) };
  if (stopped !== null) return { mark: 'warn', text: t('No requests since {time}.', { time: at(stopped) }) };
  if (h.state === 'silent') return { mark: 'warn', text: t('No requests any more.') };
  if (summary.calls === 0) return { mark: '', text: t('No requests in this time range.') };
  if (h.state === 'slow') return { mark: 'warn', text: t('Slower than usual: p95 is {p95}, {factor} the usual {usual}.', { p95: duration(h.series.incident!.p95!), factor: factor(slowdownOf(h)), usual: duration(h.series.usual!.p95!) }) };
  const values = { share: share(h.errorShare), p95: duration(summary.p95 ?? 0) };
  if (h.state === 'ended') return { mark: 'partial', text: t('As usual now. It {ended}.', { ended: endedText(h, at) }) };
  if (h.series.usual) return { mark: 'ok', text: t('As usual: {share} of requests fail, p95 is {p95}.', values) };
  return { mark: '', text: t('{share} of requests fail, p95 is {p95}. There is not enough earlier data to compare with.', values) };
}

function failingText(h: ServiceHealth, changes: Change[], at: TimeText): string {
  const version = changes.find((c) => c.kind === 'version' && h.since !== null && Math.abs(millis(c.at) - h.since) <= near);
  const values = { share: share(errorShare(h.series.incident)), usual: share(h.usualErrorShare ?? 0), time: h.since === null ? '' : at(h.since), version: version?.to ?? '' };
  if (h.since === null) return h.usualErrorShare === null ? t('{share} of requests fail.', values) : t('{share} of requests fail, usually {usual}.', values);
  return version
    ? t('{share} of requests fail, usually {usual}, since {time} when version {version} appeared.', values)
    : t('{share} of requests fail, usually {usual}, since {time}.', values);
}

const minErrors = 5;
const mostErrors = 0.6; // share of the failures from which on an operation stands for them
const failingCalls = 0.05;

/** A further sentence, with the search for what it says. */
export interface Cause {
  text: string;
  q: string;
}

/** Where the failures of requests are: in one operation, and in calls that this service makes. */
export function causesOf(s: OneService, service: string): Cause[] {
  const [requests, calls] = [roleOf(s, 'requests'), roleOf(s, 'calls')];
  const failures = requests.total.summary.errors;
  if (failures < minErrors) return [];
  const causes: Cause[] = [];
  const worst = mostFailing(requests.operations);
  if (worst && requests.operations.length > 1 && worst.summary.errors >= mostErrors * failures) {
    causes.push({ text: t('{share} of the failures are in {operation}.', { share: share(worst.summary.errors / failures), operation: worst.name }), q: operationQuery(service, worst.name, 'error') });
  }
  const call = mostFailing(calls.operations);
  if (call && call.summary.errors >= failures / 2 && errorShare(call.summary) >= failingCalls) {
    causes.push({ text: t('Of its calls {operation}, {share} failed.', { share: share(errorShare(call.summary)), operation: call.name }), q: operationQuery(service, call.name, 'error') });
  }
  return causes;
}

function mostFailing(list: OperationSeries[]): OperationSeries | undefined {
  return list.reduce<OperationSeries | undefined>((a, b) => (a && a.summary.errors >= b.summary.errors ? a : b), undefined);
}
