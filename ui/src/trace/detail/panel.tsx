import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Attribute, SpanDetail } from '../../api/types';
import { spansBeside, spansLike, spansOf } from '../../query/edit';
import { fieldLabel } from '../../query/field';
import { config } from '../../shell/config';
import { Button, classes, TabPanel, Tabs, type Tab } from '../../shell/controls';
import { ExternalLinks } from '../../shell/external-links';
import { Menu } from '../../shell/floating';
import { duration, percent } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { linksFor, subjectOf, type FilledLink } from '../../shell/link-templates';
import { ServiceMark } from '../../shell/service-mark';
import { Failure, Skeleton } from '../../shell/states';
import { copy } from '../../shell/toast';
import { t } from '../../shell/text';
import { link, navigate, visit } from '../../shell/url';
import { durationOf, kindOf, operation, serviceName, shownService, spanID, warningsOf } from '../model/span';
import { flag, type TraceModel } from '../model/types';
import { setRoot, zoomTo } from '../moves';
import { Splitter, storedWidth } from '../splitter';
import type { TraceState } from '../state';
import { Attributes, chosenValues, exploreLink, exploreView, groupLink } from './attributes';
import { Events, isException, Links } from './events';
import { Exception } from './exception';
import { SetApart } from './set-apart';
import { UsualDurations } from './usual';
import { useDetail } from './use-detail';
import css from './detail.module.css';

/** Width of the detail panel. */
export const panelWidth = storedWidth('tracing.trace.panel', 376, 320, 640);

type TabID = 'attributes' | 'events' | 'links' | 'resource';

/** Everything about the selected span; what the outline knows is shown at once. */
export default function DetailPanel({ state, span }: { state: TraceState; span: number }) {
  const model = state.model.value;
  const id = spanID(model, span);
  const { detail, error, retry } = useDetail(state, id, model);
  const [tab, setTab] = useState<TabID>('attributes');
  const body = useRef<HTMLDivElement>(null);
  const panel = useRef<HTMLElement>(null);
  // Until the details are drawn, the panel covers the spans, which take long to draw for less width.
  const [beside, setBeside] = useState(false);
  useEffect(() => { body.current?.scrollTo(0, 0); }, [id]);
  useEffect(() => { if (detail || error) setBeside(true); }, [detail, error]);
  useLayoutEffect(() => () => {
    if (panel.current?.contains(document.activeElement)) document.getElementById('spans')?.focus({ preventScroll: true });
  }, []);
  return (
    <aside ref={panel} class={classes(css.panel, !beside && css.over)} aria-label={t('Span details')} style={{ '--panel-w': `${panelWidth.value.value}px` }}>
      <Splitter width={panelWidth} label={t('Width of the details')} direction={-1} class={css.splitter} />
      <PanelHead state={state} span={span} detail={detail} onLinks={() => setTab('links')} />
      {error && !detail && <div class={css.body}><Failure what={t('The attributes cannot be loaded')} error={error} retry={retry} /></div>}
      {!error && !detail && <div class={css.body}><Skeleton rows={6} height="24px" /></div>}
      {detail && (
        <>
          <div class={css.tabs}><Tabs label={t('Span details')} name="span" tabs={tabsOf(detail)} selected={tab} onSelect={setTab} /></div>
          <div class={css.body} ref={body}>
            <TabPanel name="span" selected={tab}>
              {tab === 'attributes' && <Main state={state} detail={detail} warnings={warningsOf(model, span)} key={id} />}
              {tab === 'events' && <Events state={state} detail={detail} />}
              {tab === 'links' && <Links state={state} detail={detail} />}
              {tab === 'resource' && <Resource state={state} detail={detail} key={id} />}
            </TabPanel>
          </div>
        </>
      )}
    </aside>
  );
}

function tabsOf(d: SpanDetail): Tab<TabID>[] {
  const number = (n: number): string | undefined => (n > 0 ? String(n) : undefined);
  return [
    { id: 'attributes', label: t('Attributes'), count: number(d.attributes.length) },
    { id: 'events', label: t('Events'), count: number(d.events.length) },
    { id: 'links', label: t('Logs, links'), count: number(d.links.length + d.linkedFrom.length) },
    { id: 'resource', label: t('Resource'), count: number(d.resource.length) },
  ];
}

function PanelHead({ state, span, detail, onLinks }: { state: TraceState; span: number; detail: SpanDetail | null; onLinks: () => void }) {
  const model = state.model.value;
  const peer = model.peer[span] >= 0;
  return (
    <div class={css.head}>
      <div class={css.service}>
        <ServiceMark name={serviceName(model, shownService(model, span))} inferred={peer} />
        {peer && <span class={css.faint}>{t('called by {model}', { model: serviceName(model, model.service[span]) })}</span>}
        <span class={css.faint}>{kindOf(model, span)}</span>
        <span class={css.grow} />
        <Menu label={t('Span')} align="end" items={spanActions(state, span, detail, onLinks)} trigger={(p) => <Button kind="quiet" icon="more" label={t('Actions on the span')} {...p} />} />
        <Button kind="quiet" icon="x" label={t('Close (Esc)')} onClick={() => navigate({ span: '' })} />
      </div>
      <h2 class={css.title}>{operation(model, span)}</h2>
      <p class={css.status}>
        {(model.flags[span] & flag.error) !== 0 && <span class={css.error}><Mark kind="error" size={13} label="" />{detail ? errorText(detail) : t('error')}</span>}
        <span class={css.faint}>{t('starts at +{start}', { start: duration(model.start[span]) })}</span>
      </p>
      <Times model={model} span={span} />
      <UsualDurations state={state} span={span} />
      {detail && <SpanLinks links={linksFor(config.value?.links ?? [], 'span', subjectOf(model.traceID, detail))} />}
    </div>
  );
}

function SpanLinks({ links }: { links: FilledLink[] }) {
  return links.length > 0 ? <p class={css.externals}><ExternalLinks links={links} /></p> : null;
}

/** The message of the status, or only the type if an exception below says the same. */
function errorText(d: SpanDetail): string {
  const type = d.attributes.find((a) => a.key === 'error.type')?.value ?? '';
  const repeated = d.events.some((e) => isException(e) && e.attributes.some((a) => a.key === 'exception.message' && a.value !== '' && d.statusMessage.includes(a.value)));
  return (repeated ? type : d.statusMessage || type) || t('error');
}

/** Duration, its share of the trace, and how much of it is on the critical path. */
function Times({ model, span }: { model: TraceModel; span: number }) {
  const { path } = model;
  let own = 0;
  for (const s of path.bySpan.subarray(path.offset[span], path.offset[span + 1])) own += path.to[s] - path.from[s];
  const time = durationOf(model, span);
  return (
    <p class={css.times}>
      <b>{duration(time)}</b>
      <span class={css.faint}>{t('{share} of the trace{own}', { share: percent(time / Math.max(1, model.duration)), own: own > 0 ? t(', {own} on the critical path', { own: duration(own) }) : t(', not on the critical path') })}</span>
    </p>
  );
}

function spanActions(state: TraceState, span: number, detail: SpanDetail | null, onLinks: () => void) {
  const id = spanID(state.model.value, span);
  const server = state.source.kind === 'server';
  return [
    { label: t('Zoom to the span'), keys: 'z', onSelect: () => zoomTo(state, span) },
    { label: t('Show as root'), keys: 'r', onSelect: () => setRoot(state, span) },
    ...(server && detail ? [
      { label: t('Find more like this'), onSelect: () => navigate(exploreView(spansLike(detail, chosenValues(state, detail)), detail)) },
      { label: t('Find spans of this operation'), onSelect: () => navigate(exploreView(spansOf(detail), detail)) },
      { label: t('Find other spans of this service'), onSelect: () => navigate(exploreView(spansBeside(detail), detail)) },
      { label: t('Group the spans of this operation by status'), onSelect: () => visit(groupLink('status', detail)) },
    ] : []),
    ...(server && config.value?.links?.length === 0 ? [{ label: t('Link to logs or dashboards'), title: t('Shows what to add to the configuration'), onSelect: onLinks }] : []),
    { label: t('Copy as JSON'), disabled: !detail, onSelect: () => void copy(JSON.stringify(detail, null, 2), t('Span')) },
    { label: t('Copy span ID'), onSelect: () => void copy(id, t('Span ID')) },
    ...(server ? [{ label: t('Copy link to the span'), onSelect: () => void copy(new URL(link({ page: 'trace', id: state.model.value.traceID }, { span: id }), location.href).href, t('Link')) }] : []),
  ];
}

/** What went wrong first, then the attributes of the span. */
function Main({ state, detail, warnings }: { state: TraceState; detail: SpanDetail; warnings: string[] }) {
  const exceptions = detail.events.filter(isException);
  const all = [...new Set([...warnings, ...detail.warnings])];
  return (
    <>
      {exceptions.slice(0, 3).map((e, i) => <Exception key={i} attributes={e.attributes} />)}
      {all.map((w) => <p key={w} class={css.warning}><Mark kind="warn" size={13} label="" />{w}</p>)}
      <SetApart state={state} detail={detail} />
      <Attributes state={state} detail={detail} groups={[{ title: t('Span'), scope: 'span', attributes: detail.attributes }]} />
      {state.source.kind === 'server' && <MoreLikeThis state={state} detail={detail} />}
    </>
  );
}

/** Searches for the same operation, with the attributes that were chosen. */
function MoreLikeThis({ state, detail }: { state: TraceState; detail: SpanDetail }) {
  const chosen = chosenValues(state, detail);
  return (
    <p class={css.like}>
      <a href={exploreLink(spansLike(detail, chosen), detail)}>{t('Find more like this')}</a>
      {chosen.length > 0 && <span class={css.faint}> {t('with {fields}', { fields: chosen.map((f) => `${fieldLabel(f.field)} = ${f.value.slice(0, 40)}`).join(', ') })}</span>}
    </p>
  );
}

/** What produced the span. */
function Resource({ state, detail }: { state: TraceState; detail: SpanDetail }) {
  const text = (key: string, value: string): Attribute[] => (value ? [{ key, type: 'string', value }] : []);
  const ids = [...text(t('span ID'), detail.spanID), ...text(t('parent span ID'), detail.parentSpanID), ...text(t('trace state'), detail.traceState)];
  const { scope } = detail;
  return (
    <>
      <Attributes state={state} detail={detail} groups={[
        { title: t('Resource'), scope: 'resource', attributes: detail.resource },
        { title: scope.name ? t('Scope {scope} {version}', { scope: scope.name, version: scope.version }) : t('Scope'), scope: 'instrumentation', attributes: scope.attributes },
      ]} />
      {scope.name && scope.attributes.length === 0 && <p class={css.scope}><span class={css.faint}>{t('Scope')}</span> {scope.name} {scope.version}</p>}
      <h3 class={css.group}>{t('Identity')}</h3>
      <dl class={css.list}>{ids.map((a) => <div key={a.key} class={css.item}><dt><span>{a.key}</span></dt><dd>{a.value}</dd></div>)}</dl>
    </>
  );
}
