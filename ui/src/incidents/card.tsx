// One incident: what is wrong with which service since when, what it reached, what users see, and where to go on.

import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import type { AffectedService, IncidentError, Incidents, SystemIncident } from '../api/incidents';
import { Button } from '../shell/controls';
import { about, count, percentile, share } from '../shell/format';
import { Mark } from '../shell/icons';
import { serviceLabel } from '../shell/service';
import { fixedRange } from '../shell/range';
import { ServiceMark } from '../shell/service-mark';
import { chartsOf, ShareMenu, textOf, type Finding } from '../shell/share';
import { t, Text, tn } from '../shell/text';
import { link, visit, type Range } from '../shell/url';
import { badQuery, explainLink, rangeOf } from './links';
import { badText, errorShare, incidentText, type TimeText } from './words';
import css from './card.module.css';

interface Props {
  incidents: Incidents;
  at: TimeText;
  /** End of the range of the page: `now`, or a time. */
  to: string;
}

/** All incidents of an answer. */
export function IncidentCards({ incidents, at, to }: Props) {
  const list = incidents.incidents;
  if (list.length === 0) return null;
  return (
    <section class={css.cards} aria-label={t('Incidents')}>
      {list.map((i, n) => <Card key={i.source.name + i.source.start} i={i} at={at} to={to} again={list.findIndex((o) => o.source.name === i.source.name) < n} />)}
      {incidents.omitted > 0 && <p class={css.more}>{tn(incidents.omitted, '{n} more incident is not shown.', '{n} more incidents are not shown.', { n: count(incidents.omitted) })}</p>}
    </section>
  );
}

/** `again`: there is a card of the same service above, so that the details are left to the page of the service. */
function Card({ i, at, to, again }: { i: SystemIncident; at: TimeText; to: string; again: boolean }) {
  const { source } = i;
  const errors = source.kind === 'errors';
  const open = source.end === null;
  const range = rangeOf(source, to);
  const card = useRef<HTMLElement>(null);
  const finding = (): Finding => {
    const article = card.current!;
    return { sentence: textOf(article.querySelector('h2')), href: link({ page: 'service', name: source.name }, { range: fixedRange(range) }), parts: [article, ...chartsOf()] };
  };
  return (
    <article ref={card} class={`${css.card} ${open ? (errors ? css.failing : css.slow) : ''}`}>
      <div class={css.head}>
        <h2 class={css.title}>
          <Mark kind={open ? (errors ? 'error' : 'warn') : 'partial'} size={13} label={open ? t('ongoing') : t('ended')} />
          <span><a href={link({ page: 'service', name: source.name })}>{serviceLabel(source.name)}</a>{' '}{incidentText(source, source.usual, at, i.version)}</span>
        </h2>
        <span class={css.actions} data-unshared>
          <Button kind="primary" onClick={() => visit(explainLink(source, to))}>{errors ? t('Explain errors') : t('Explain slow requests')}</Button>
          {i.traceID && <a href={link({ page: 'trace', id: i.traceID }, { span: i.spanID })}>{errors ? t('Newest failed trace') : t('Newest slow trace')}</a>}
          <a href={link({ page: 'explore' }, { q: badQuery(source), of: 'spans', range })}>{t('All traces')}</a>
          <ShareMenu finding={finding} />
        </span>
      </div>
      {!again && <dl class={css.facts}>
        <Fact name={t('Requests')}>{requestsText(i)}</Fact>
        {i.roots && <Fact name={t('Users see')} title={t('Requests without a caller: the first span of each trace')}>{usersText(i)}</Fact>}
        {i.reached.length > 0 && <Fact name={t('Also affected')}><Reached list={i.reached} /></Fact>}
        {i.errors.length > 0 && <Fact name={t('Errors')}><Chain list={i.errors} examined={i.examined} range={range} /></Fact>}
      </dl>}
    </article>
  );
}

function Fact({ name, title, children }: { name: string; title?: string; children: ComponentChildren }) {
  return <div class={css.fact} title={title}><dt>{name}</dt><dd>{children}</dd></div>;
}

/** "210 of 626 failed; version 2.14.0 fails 68.0 %, other versions none". */
function requestsText({ source, version }: SystemIncident): string {
  const values = { errors: count(source.errors), calls: count(source.calls), p50: percentile(source.p50 ?? 0), p99: percentile(source.p99 ?? 0) };
  const text = source.kind === 'errors' ? t('{errors} of {calls} failed', values) : t('{calls}, p50 {p50}, p99 {p99}', values);
  if (!version || version.of.calls === 0 || source.kind !== 'errors') return text;
  const of = t('{text}; version {version} fails {share}', { text, share: share(errorShare(version.of)), version: version.to });
  if (version.others.calls === 0) return of;
  return version.others.errors === 0 ? t('{of}, other versions none', { of }) : t('{of}, other versions {share}', { of, share: share(errorShare(version.others)) });
}

/** "9.4 % of requests to frontend failed (215 of 2,278), usually 0.1 %; of POST /checkout 34.1 %". */
function usersText({ source, roots }: SystemIncident): string {
  const { share: part, usual, operation, of, ...r } = roots!;
  const services = roots!.services.join(', ');
  if (source.kind === 'slow') {
    const p95 = t('p95 {p95} of requests to {services}', { services, p95: about(percentile(r.p95 ?? 0), part < 1) });
    return usual?.p95 ? t('{text}, usually {usual}', { text: p95, usual: percentile(usual.p95) }) : p95;
  }
  const failed = t('{share} of requests to {services} failed ({errors} of {calls})', { services, share: about(share(errorShare(r)), part < 1), errors: count(r.errors), calls: count(r.calls) });
  const compared = usual ? t('{text}, usually {usual}', { text: failed, usual: share(errorShare(usual)) }) : failed;
  return of.calls < r.calls ? t('{text}; of {operation} {share}', { text: compared, operation, share: share(errorShare(of)) }) : compared;
}

function Reached({ list }: { list: AffectedService[] }) {
  return <>{list.map((s) => <span key={s.name} class={css.reached}><a href={link({ page: 'service', name: s.name })}><ServiceMark name={s.name} /></a> {badText(s)}</span>)}</>;
}

/** Errors in causal order: the innermost first, then those that follow from it. */
function Chain({ list, examined, range }: { list: IncidentError[]; examined: number; range: Range }) {
  return (
    <ol class={css.chain}>
      {list.map((e) => (
        <li key={`${e.service}\n${e.title}\n${e.operation}`} title={t('In {traces} of the newest {examined} traces with errors', { traces: count(e.traces), examined: count(examined) })}>
          {e.follows && <><span class={css.then} aria-hidden="true">→</span><span class="visually-hidden">{t('followed by')}</span></>}
          <Text
            of="{error} in {service}" service={<ServiceMark name={e.service} />}
            error={<a href={link({ page: 'explore' }, { q: `{ service = ${JSON.stringify(e.service)} && name = ${JSON.stringify(e.operation)} && error }`, of: 'spans', range })}>{e.title || e.operation}</a>}
          />
        </li>
      ))}
    </ol>
  );
}
