// The state of a service in one sentence.

import type { OneService, OperationSeries } from '../../api/service';
import { errorShare, incidentText, type TimeText } from '../../incidents/words';
import { percentile, share } from '../../shell/format';
import { t } from '../../shell/text';
import { figuresOf, type ServiceHealth } from '../overview/health';
import { operationQuery } from './queries';
import { roleOf } from './roles';

/** The sentence and how bad it is. */
export interface ServiceSentence {
  mark: 'error' | 'warn' | 'partial' | 'ok' | '';
  text: string;
}

/** Computes the sentence. `stopped` is the time of the last request if there are none any more. */
export function serviceSentence(h: ServiceHealth, stopped: number | null, at: TimeText): ServiceSentence {
  const { summary, incident, usual } = h.series;
  const text = incident ? t('{service} {incident}.', { service: h.name, incident: incidentText(incident, usual, at) }) : '';
  if (h.state === 'failing') return { mark: 'error', text };
  if (stopped !== null) return { mark: 'warn', text: t('No requests since {time}.', { time: at(stopped) }) };
  if (h.state === 'silent') return { mark: 'warn', text: t('Requests have stopped.') };
  if (summary.calls === 0) return { mark: '', text: t('No requests in this time range.') };
  if (h.state === 'slow') return { mark: 'warn', text };
  const values = { share: share(h.errorShare), p95: percentile(summary.p95 ?? 0) };
  if (h.state === 'ended') return { mark: 'partial', text: t('Back to normal: {text}', { text }) };
  if (usual) return { mark: 'ok', text: t('As usual: {share} of requests fail, p95 is {p95}.', values) };
  return { mark: '', text: t('{share} of requests fail, p95 is {p95}. There is not enough earlier data to compare with.', values) };
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
  const failures = figuresOf(requests.total).errors;
  if (failures < minErrors) return [];
  const causes: Cause[] = [];
  const worst = mostFailing(requests.operations);
  if (worst && requests.operations.length > 1 && figuresOf(worst).errors >= mostErrors * failures) {
    causes.push({ text: t('{share} of the failures are in {operation}.', { share: share(figuresOf(worst).errors / failures), operation: worst.name }), q: operationQuery(service, worst.name, 'error') });
  }
  const call = mostFailing(calls.operations);
  if (call && figuresOf(call).errors >= failures / 2 && errorShare(figuresOf(call)) >= failingCalls) {
    causes.push({ text: t('{share} of its {operation} calls failed.', { share: share(errorShare(figuresOf(call))), operation: call.name }), q: operationQuery(service, call.name, 'error') });
  }
  return causes;
}

function mostFailing(list: OperationSeries[]): OperationSeries | undefined {
  return list.reduce<OperationSeries | undefined>((a, b) => (a && figuresOf(a).errors >= figuresOf(b).errors ? a : b), undefined);
}
