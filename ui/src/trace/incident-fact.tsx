import type { Incidents } from '../api/incidents';
import { rangeOf } from '../incidents/links';
import { incidentText } from '../incidents/words';
import { millis, nanos, time } from '../shell/format';
import { Mark } from '../shell/icons';
import { zone } from '../shell/preferences';
import { t } from '../shell/text';
import { link } from '../shell/url';
import { useRequest } from '../shell/use-request';
import { serviceName, shownService } from './model/span';
import type { TraceState } from './state';
import css from './header.module.css';

const maxServices = 20;
const before = 3_600_000; // milliseconds: with a trace alone, there is nothing to be known of a new service

/** Says that the trace is in the time of an incident of one of its services: of those that fail, or else of the root. */
export default function IncidentFact({ state }: { state: TraceState }) {
  const model = state.model.value;
  const spans = model.facts.errors.length > 0 ? [...model.facts.errors] : model.roots.slice(0, 1);
  const service = [...new Set(Array.from(spans, (s) => serviceName(model, shownService(model, s))))].slice(0, maxServices);
  const begin = millis(model.begin);
  const end = begin + model.duration / 1e6;
  const { data } = useRequest<Incidents>('incidents', (now) => ({ service, start: nanos(begin - before), end: nanos(now) }), { maxAge: 60_000 });
  const found = data?.incidents.find(({ source: s }) => (s.start === null || millis(s.start) <= end) && (s.end === null || millis(s.end) >= begin));
  if (!found) return null;
  const { source, version } = found;
  const at = (ms: number): string => time(ms, zone.value, Date.now(), 0);
  return (
    <a class={css.incident} href={link({ page: 'service', name: source.name }, { range: rangeOf(source, 'now') })}>
      <Mark kind={source.end === null ? 'error' : 'partial'} size={13} label="" />
      <span>{t('Part of an incident: {service} {incident}', { service: source.name, incident: incidentText(source, source.usual, at, version) })}</span>
    </a>
  );
}
