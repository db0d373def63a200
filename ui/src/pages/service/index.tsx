import type { ComponentChildren } from 'preact';
import type { Incidents } from '../../api/incidents';
import type { ServiceMap } from '../../api/map';
import type { OneService, RoleName } from '../../api/service';
import type { Changes } from '../../api/types';
import { Button, TabPanel, Tabs } from '../../shell/controls';
import { capable, config } from '../../shell/config';
import { ExternalLinks } from '../../shell/external-links';
import { Mark } from '../../shell/icons';
import { IncidentCards } from '../../incidents/card';
import { rangeOf } from '../../incidents/links';
import { iso, millis, short, time } from '../../shell/format';
import { zone } from '../../shell/preferences';
import { linksFor } from '../../shell/link-templates';
import { isRelative } from '../../shell/range';
import { serviceLabel } from '../../shell/service';
import { ServiceSwatch } from '../../shell/service-mark';
import { AnswerState, Empty, Messages, Partial, Progress } from '../../shell/states';
import { t } from '../../shell/text';
import { WiderRanges } from '../../shell/time-picker';
import { useTitle } from '../../shell/title';
import { link, navigate, view, visit, type Range } from '../../shell/url';
import { rangeParams, useRequest, type RequestState } from '../../shell/use-request';
import { ChartRow } from '../overview/chart-row';
import { figuresOf, figuresSeconds, figuresText, hadErrors, judge, silentSince } from '../overview/health';
import { Examples } from './examples';
import { Facts, instancesIn, useFacets } from './facts';
import { OperationHeat } from './heat';
import { Neighbors } from './neighbors';
import { Operations } from './operations';
import { roleQuery, spansOf } from './queries';
import { asServices, mainRole, markedOperation, missingKind, roleOf, roleOfKind, used } from './roles';
import { causesOf, serviceSentence, type Cause } from './sentence';
import { KindChoice, offeredTabs, SpansTab } from './tabs';
import css from './service.module.css';

const every = 30_000;
const changesEvery = 60_000;
const incidentsEvery = 30_000;

/** `/services/{name}`: requests, errors and durations of one service, its operations, callers and calls. */
export default function ServicePage() {
  const { route } = view.value;
  const name = route.page === 'service' ? route.name : '';
  useTitle(serviceLabel(name));
  return <Loaded key={name} name={name} />;
}

function Loaded({ name }: { name: string }) {
  const { range } = view.value;
  const refresh = isRelative(range);
  const answer = useRequest<OneService>('service', (now) => ({ service: name, ...rangeParams(range, now) }), { every: refresh ? every : 0 });
  const changes = useRequest<Changes>('changes', (now) => rangeParams(range, now), { every: refresh ? changesEvery : 0 });
  const main = answer.data && mainRole(answer.data)?.total;
  const some = !!main?.incident;
  const incidents = useRequest<Incidents>(some ? 'incidents' : null, (now) => ({ service: name, ...rangeParams(range, now) }), { every: refresh ? incidentsEvery : 0 });
  // Calls are those since the start of the incident, as all numbers.
  const map = useRequest<ServiceMap>(answer.data && capable('dependencies') ? 'map' : null, (now) => ({ service: name, ...rangeParams(range, now), ...(main?.since && { start: main.since.start }) }), { every: refresh ? changesEvery : 0 });
  if (!answer.data) return <Blank name={name} answer={answer} />;
  return <Service name={name} answer={answer} data={answer.data} changes={(changes.data?.changes ?? []).filter((c) => c.service === name)} map={map} incidents={some ? incidents.data : undefined} expecting={some && !incidents.data && !incidents.error} />;
}

interface ServiceProps {
  name: string;
  answer: RequestState<OneService>;
  data: OneService;
  changes: Changes['changes'];
  map: RequestState<ServiceMap>;
  incidents: Incidents | undefined;
  /** Incidents are being read: their place is kept. */
  expecting: boolean;
}

function Service({ name, answer, data, changes, map, incidents, expecting }: ServiceProps) {
  const facets = useFacets(name, data.start, data.end);
  const main = mainRole(data);
  const links = <ExternalLinks links={linksFor(config.value?.links ?? [], 'service', { service: name, start: BigInt(data.start), end: BigInt(data.end) })} />;
  if (!main) return <Nothing name={name} answer={answer} map={map} links={links} />;
  const services = asServices(data, name, main);
  const health = judge(services)[0];
  const at = (ms: number): string => time(ms, zone.value, millis(data.end), 0);
  const sentence = serviceSentence(health, silentSince(main.total, data), at);
  const causes = causesOf(data, name);
  const to = isRelative(view.value.range) ? 'now' : iso(millis(data.end));
  const told = incidents?.incidents.some((i) => i.source.name === name && !i.source.end === !main.total.incident?.end);
  const missing = missingKind(data);
  const marked = markedOperation(data, view.value.operation);
  const version = changes.find((c) => c.kind === 'version');
  const role = roleOfKind(data, view.value.kind) ?? main;
  const selected = offeredTabs().find((o) => o.id === view.value.tab)?.id ?? 'summary';
  const counts: Record<string, number> = { errors: role.total.summary.errors, instances: instancesIn(facets.data)[0]?.distinct ?? 0 };
  return (
    <div class={css.page}>
      <Progress active={answer.loading} label={t('Loading the service')} />
      <Head name={name} role={main.role} errors={main.total.summary.errors > 0} range={hadErrors(main.total) ? rangeOf(main.total.incident!, to) : undefined} told={expecting || told}>
        <Facts service={name} data={facets.data} end={data.end} version={version} />
        {links}
      </Head>
      {missing
        ? <div class={css.sentence}><p><Mark kind="partial" size={13} label="" /><b>{missing.what}</b></p><p class={css.second}>{missing.advice}</p></div>
        : told ? health.state === 'ended' && <Sentence mark="ok" text={t('Back to normal.')} causes={[]} /> : <Sentence {...sentence} causes={causes} />}
      {expecting && <div class={css.expecting} />}
      {incidents && <div class={css.incidents}><IncidentCards incidents={incidents} at={at} to={to} /></div>}
      {told && health.state !== 'ended' && <Sentence mark="" text="" causes={causes} />}
      <AnswerState what={t('Numbers')} answer={answer} class={css.notice} />
      <div class={css.notice}><Messages messages={answer.messages} /></div>
      <div class={css.tabs}>
        <Tabs
          label={t('Views of the service')} name="service" selected={selected} onSelect={(id) => navigate({ tab: id === 'summary' ? '' : id, error: '', sort: '' }, { replace: true })}
          tabs={offeredTabs().map((o) => ({ ...o, count: counts[o.id] ? short(counts[o.id]) : undefined }))}
          end={<KindChoice data={data} main={main} role={role} />}
        />
      </div>
      <TabPanel name="service" selected={selected} class={selected === 'summary' ? css.summary : css.tab}>
        {selected !== 'summary' ? <SpansTab id={selected} service={name} role={role.role} start={data.start} end={data.end} facets={facets} /> : <>
          <ChartRow data={asServices(data, name, role)} changes={changes} judged={role === main ? [health] : judge(asServices(data, name, role))} />
          <div class={css.columns}>
            <div class={css.main}>
              <Operations data={data} service={name} marked={marked?.operation} />
              {marked && capable('aggregates') && <OperationHeat service={name} operation={marked.operation.name} start={data.start} end={data.end} />}
            </div>
            <aside class={css.aside} aria-label={t('Callers, calls and examples')}>
              {capable('dependencies') ? <Neighbors answer={map} service={name} seconds={figuresSeconds(main.total, data)} of={figuresText(main.total, data)} outgoing={used(roleOf(data, 'calls').total)} /> : <Partial>{t('This server\'s store does not count calls between services.')}</Partial>}
              <Examples key={role.role} service={name} role={role.role} p95={figuresOf(role.total).p95} start={data.start} end={data.end} />
            </aside>
          </div>
        </>}
      </TabPanel>
    </div>
  );
}

/** `range`: the time of an incident. `told`: its card is below, or will be; undefined if there is no card. */
function Head({ name, errors, role = 'requests', range = view.value.range, told, children }: { name: string; errors?: boolean; role?: RoleName; range?: Range; told?: boolean; children?: ComponentChildren }) {
  return (
    <div class={css.head}>
      <h1 class={css.title}><ServiceSwatch name={name} />{serviceLabel(name)}</h1>
      <span class={css.facts}>{children}</span>
      <span class={css.grow} />
      <Button icon="search" onClick={() => visit(link({ page: 'explore' }, { q: spansOf(name) }))}>{t('Traces')}</Button>
      {capable('aggregates') && <Button kind="quiet" onClick={() => visit(link({ page: 'explore' }, { q: spansOf(name), tab: 'times' }))} title={t('Compare its operations with yesterday or any other time')}>{t('Since yesterday')}</Button>}
      {errors && !told && <Button kind={told === undefined ? 'primary' : undefined} onClick={() => visit(link({ page: 'explore' }, { q: roleQuery(name, role), of: 'spans', sel: 'errors', tab: 'explain', range }))}>{t('Explain errors')}</Button>}
    </div>
  );
}

function Sentence({ mark, text, causes }: ReturnType<typeof serviceSentence> & { causes: Cause[] }) {
  if (!text && causes.length === 0) return null;
  return (
    <p class={css.sentence}>
      <span class={mark === 'error' ? css.failing : undefined}>{mark && text && <Mark kind={mark} size={13} label="" />}{text}</span>
      {causes.map((c) => <span key={c.q}>{' '}<a href={link({ page: 'explore' }, { q: c.q })}>{c.text}</a></span>)}
    </p>
  );
}

/** Before the first answer, or without one. */
function Blank({ name, answer }: { name: string; answer: RequestState<OneService> }) {
  return (
    <div class={css.page}>
      <Head name={name} />
      <AnswerState what={t('Service')} answer={answer} class={css.notice} rows={12} />
      {answer.error && <div class={css.columns}><div class={css.main} /><aside class={css.aside} /></div>}
    </div>
  );
}

/** A service without spans in the range. */
function Nothing({ name, answer, map, links }: { name: string; answer: RequestState<OneService>; map: RequestState<ServiceMap>; links: ComponentChildren }) {
  const peer = !!map.data?.nodes.name.some((n, i) => n === name && map.data!.nodes.peer[i]);
  return (
    <div class={css.page}>
      <Progress active={answer.loading} label={t('Loading the service')} />
      <Head name={name}>{links}</Head>
      <div class={css.notice}>
        <Empty title={peer ? t('This system sends no spans. Other services name it as the system that they call.') : t('This service has no spans in this time range.')}>
          <WiderRanges of={{ page: 'service', name }} />
          <a href={link({ page: 'services' })}>{t('All services')}</a>
          {!peer && <a href={link({ page: 'sampling' }, { ask: { service: name, operation: '', trace: '' } })}>{t('Why are its traces missing?')}</a>}
        </Empty>
        <Messages messages={answer.messages} />
      </div>
      {map.data && <div class={css.notice}><Neighbors answer={map} service={name} seconds={1} /></div>}
    </div>
  );
}
