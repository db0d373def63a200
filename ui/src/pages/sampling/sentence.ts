import type { MissingTrace, Stage } from '../../api/deployment';
import { count, duration, fixed, share } from '../../shell/format';
import type { MarkKind } from '../../shell/icons';
import { t, tn } from '../../shell/text';

/** A sentence, its mark, and what it rests on. */
export interface Lead {
  text: string;
  mark: MarkKind | null;
  sub: string;
}

/** The stage that decides, or null. */
export function decidingStage(m: MissingTrace): Stage | null {
  return m.deciding ? (m.processes[m.deciding.process]?.data?.stages[m.deciding.stage] ?? null) : null;
}

/** The answer to "why is this trace missing", as far as it is known. */
export function leadOf(m: MissingTrace): Lead {
  const stage = decidingStage(m);
  if (m.verdict === 'stored') return storedLead(m);
  if (m.verdict === 'drops' && stage) return { text: dropsText(m, stage), mark: 'error', sub: numberText(stage) };
  if (m.stored.trace === 'unreadable') return { text: t('Possibly stored: part of the store cannot be read'), mark: 'partial', sub: t('The readable part does not contain the trace. The message below names the other part.') };
  if (m.causes.some((c) => c.code === 'no_spans')) return { text: t('No span has arrived here yet'), mark: 'error', sub: t('Check the address that the program sends to. The Status page lists the receivers and their addresses.') };
  if (m.stored.service === 'unknown') return unknownLead(m);
  if (m.verdict === 'depends' && stage) return { text: dependsText(m, stage), mark: 'partial', sub: certainty(m) };
  return { text: m.trace ? t('Sampling does not drop this trace') : t('Sampling does not drop traces of {service}', { service: m.service }), mark: 'ok', sub: elsewhere(m) };
}

function storedLead(m: MissingTrace): Lead {
  const spans = tn(m.stored.spans, '{n} span', '{n} spans', { n: count(m.stored.spans) });
  if (m.causes.some((c) => c.code === 'other_service')) {
    return { text: t('Stored with {spans}, but none from {service}', { spans, service: m.service }), mark: 'warn', sub: t('Its spans are from {services}. Either {service} did not continue the trace (it got no traceparent header), its spans were lost, or it has another name.', { services: m.stored.services.join(', '), service: m.service }) };
  }
  return { text: t('Stored: the trace has {spans}', { spans }), mark: 'ok', sub: t('It is not missing. If it did not show up in a search, check the time range and the conditions.') };
}

function dropsText(m: MissingTrace, s: Stage): string {
  const values = { component: s.component ?? '', service: m.service, kept: share(s.probability ?? 0), needs: share(s.needs ?? 1) };
  if (s.kind === 'client') {
    const of = m.operation ? t('{service} {operation}', { service: m.service, operation: m.operation }) : m.service;
    return s.needs === undefined ? t('Not sampled: clients of {of} keep nothing', { of }) : t('Most likely not sampled: {of} is kept at {kept}, this trace needs {needs}', { ...values, of });
  }
  if (s.method === 'policies') return t('Dropped by {component}: no policy keeps this trace', values);
  return s.needs === undefined ? t('Dropped by {component}: it keeps nothing', values) : t('Dropped by {component}: it keeps {kept} of all traces, this one needs {needs}', values);
}

function dependsText(m: MissingTrace, s: Stage): string {
  const values = { component: s.component ?? '', service: m.service, kept: share(s.probability ?? 0) };
  if (s.method === 'policies') return t('Possibly dropped by {component}: what it keeps depends on the spans of the trace', values);
  if (s.method === 'conditions') return t('Possibly dropped by {component}: its conditions select which spans to drop', values);
  if (s.kind !== 'client') return t('{component} keeps {kept} of all traces; with a trace ID, this page says which', values);
  if (s.method === 'rate') return t('Possibly not sampled: clients of {service} have a rate limit', values);
  return m.trace ? t('Possibly not sampled: the strategy of {service} keeps {kept}', values) : t('The strategy of {service} keeps {kept} of the traces that start there', values);
}

/** What the number of a trace is, and how it decides. */
export function numberText(s: Stage): string {
  if (s.needs === undefined) return '';
  const number = fixed(1 - s.needs, 3);
  switch (s.method) {
    case 'consistent': return t('The last 56 bits of the trace ID give the number {number}. A trace is kept if its number is at least 1 minus the probability. The decision is the same in every process.', { number });
    case 'hash': return t('A hash of the trace ID gives the number {number}. A trace is kept if its number is at least 1 minus the probability.', { number });
    case 'sdk': return t('SDKs compute a number from the trace ID ({number} for this trace) and keep a trace if the number is at least 1 minus the probability. Only the service that starts a trace decides; the others follow. A client that sampled before the strategy changed, or that has its own settings, may have decided differently.', { number });
  }
  return '';
}

function unknownLead(m: MissingTrace): Lead {
  const sub = m.stored.similar.length > 0
    ? t('There are spans of {similar}: names must match exactly, including upper and lower case.', { similar: m.stored.similar.join(', ') })
    : t('It has not arrived, has another name (the resource attribute service.name), or all its spans have expired.');
  return { text: t('No span of {service} is stored', { service: m.service }), mark: 'warn', sub };
}

function certainty(m: MissingTrace): string {
  return m.trace ? t('Nothing else is certain to drop it. The spans are not stored, so their content is not known here.') : t('With a trace ID, this page says what each stage does with that trace.');
}

function elsewhere(m: MissingTrace): string {
  return m.causes.length > 0 ? t('See the other possible reasons below.') : t('It has not arrived: the program did not send it, or sent it to another address.');
}

const kinds: Record<string, string> = { consistent: t('Probability'), hash: t('Probability by trace ID hash'), sdk: t('Sampling by the client'), rate: t('Rate limit of the client'), policies: t('Tail sampling'), conditions: t('Filter') };

/** Name of a stage for readers. */
export function stageName(s: Stage): string {
  return kinds[s.method] ?? s.method;
}

/** What a stage does with the trace, in a few words. */
export function verdictText(s: Stage): string {
  if (s.probability !== undefined && s.verdict !== 'depends') return s.verdict === 'keeps' ? t('{share}, kept', { share: share(s.probability) }) : t('{share}, dropped', { share: share(s.probability) });
  if (s.probability !== undefined) return share(s.probability);
  if (s.method === 'policies' && s.wait) return t('after {wait}', { wait: duration(s.wait) });
  return s.verdict === 'keeps' ? t('kept') : s.verdict === 'drops' ? t('dropped') : t('depends');
}
