import type { Cause, Change, MissingTrace } from '../../api/deployment';
import { count, duration, number, share } from '../../shell/format';
import { t, tn } from '../../shell/text';

/** One line of the list of possible reasons. */
export interface CauseText {
  title: string;
  /** What to do or where to look. */
  hint: string;
  /** Text of the component, shown as it is. */
  reason?: string;
}

/** Text of a possible reason. */
export function causeText(c: Cause, m: MissingTrace): CauseText {
  const values = { component: c.component ?? '', service: m.service, n: count(c.spans ?? 0), time: c.duration ? duration(c.duration) : '' };
  switch (c.code) {
    case 'other_service': return { title: t('The trace has no spans of {service}', values), hint: t('Check that {service} receives the traceparent header and passes it on.', values) };
    case 'no_spans': return { title: t('No process has received a span'), hint: t('Check the address and port that the program sends to.') };
    case 'unknown': return { title: t('No span of {service} is stored', values), hint: t('Check the program\'s OTEL_SERVICE_NAME and OTEL_EXPORTER_OTLP_ENDPOINT, and its log for exporter errors.') };
    case 'no_answer': return { title: t('A process did not respond'), hint: t('What it refused or dropped is not known here.'), reason: c.reason };
    case 'refused': return { title: refusedTitle(c), hint: t('The sender got an error and may have resent the spans; its log has the error.'), reason: c.reason };
    case 'lost': return { title: tn(c.spans ?? 0, '{component} lost {n} span', '{component} lost {n} spans', values), hint: t('They had been accepted. See the log and the Status page for when and why.'), reason: c.reason };
    case 'held': return { title: tn(c.spans ?? 0, '{component} holds {n} span', '{component} holds {n} spans', values), hint: c.duration ? t('It decides {time} after the first span of a trace arrived.', values) : t('They are passed on when the processor has decided.') };
    case 'queued': return { title: tn(c.spans ?? 0, '{n} span waits in the queue of {component}', '{n} spans wait in the queue of {component}', values), hint: c.duration ? t('The oldest has been waiting for {time}. They arrive when the next hop accepts them.', values) : t('They arrive when the next hop accepts them.') };
    case 'expired': return { title: t('{component} deletes old spans', values), hint: c.duration ? t('Spans are kept for {time}, or less if the space is needed.', values) : t('Spans are deleted when the space is needed.') };
    case 'tenant': return { title: m.tenant ? t('Only spans of the tenant {tenant} are found', { tenant: m.tenant }) : t('Only spans of the selected tenant are found'), hint: t('Check which tenant the program sends with its spans.') };
  }
  return { title: c.code, hint: '', reason: c.reason };
}

function refusedTitle(c: Cause): string {
  const spans = tn(c.spans ?? 0, '{n} span', '{n} spans', { n: count(c.spans ?? 0) });
  const requests = tn(c.requests ?? 0, '{n} request', '{n} requests', { n: count(c.requests ?? 0) });
  const what = !c.spans ? requests : !c.requests ? spans : t('{spans} and {requests}', { spans, requests });
  return t('{component} refused {what}', { component: c.component ?? '', what });
}

/** Text of a change that would keep such a trace. */
export function changeText(c: Change, m: MissingTrace): string {
  const values = { component: c.component ?? '', place: c.place ?? '', from: number(c.from ?? 0), to: number(c.to ?? 0), service: m.service, key: c.key ?? '' };
  switch (c.code) {
    case 'strategy': return strategyText(c, values);
    case 'target': return t('Raise the target of adaptive sampling ({key}) from {from} to {to} traces/s', values);
    case 'percent': return t('Raise {key} of {component} from {from} to {to}', { ...values, from: share(c.from ?? 0), to: share(c.to ?? 1) });
    case 'priority': return t('Set the attribute sampling.priority to 1 on its spans: {component} then keeps them', values);
    case 'policy': return t('Add a policy to {component} that matches it, for example status_code or latency', values);
    case 'filter': return t('If a condition of {component} matches its spans, change it', values);
    case 'flag': return t('Request one trace: send its first request with a traceparent header that ends in 01');
  }
  return c.code;
}

function strategyText(c: Change, values: Record<string, string>): string {
  if (c.to === undefined) return t('Raise the rate limit of {service} in the sampling strategies ({place})', values);
  return c.place ? t('Raise the probability in {place} from {from} to {to}', values) : t('Raise the probability of {service} from {from} to {to}', values);
}
