import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import type { Names } from '../api/types';
import { capable } from './config';
import { allRequests, searchOf } from '../query/edit';
import { savedSearches } from '../query/saved';
import { rangeText } from '../query/saved-text';
import { Icon, type IconName } from './icons';
import { bestTargets, type Target } from './palette-match';
import { recentTraces } from './recent';
import { serviceLabel } from './service';
import { ServiceSwatch } from './service-mark';
import { t, Text } from './text';
import { parseTraceRef } from './trace-id';
import { base, link, visit } from './url';
import { useRequest } from './use-request';
import css from './palette-list.module.css';

const maxTargets = 12;
const maxServices = 200;
const cacheAge = 60_000;

function pages(): Target[] {
  const page = (label: string, detail: string, href: string): Target => ({ kind: 'Page', label, detail, href });
  return [
    page(t('Overview'), t('what is broken now'), link({ page: 'overview' })),
    page(t('Explore'), t('search traces and spans'), link({ page: 'explore' })),
    ...(capable('aggregates') ? [page(t('Since yesterday'), t('what changed since yesterday or any other time'), link({ page: 'explore' }, { q: allRequests, tab: 'times' }))] : []),
    page(t('Services'), t('all services'), link({ page: 'services' })),
    page(t('Errors'), t('what failed, in groups'), link({ page: 'errors' })),
    page(t('Map'), t('who calls whom'), link({ page: 'map' })),
    page(t('Open a trace file'), t('Jaeger, OTLP or Zipkin JSON; stays in the browser'), link({ page: 'open' })),
    page(t('Status'), t('receivers, queues and storage'), link({ page: 'status' })),
    page(t('Sampling'), t('why a trace is missing'), link({ page: 'sampling' })),
  ];
}

function services(names: string[]): Target[] {
  return names.map((name) => ({ kind: 'Service', label: serviceLabel(name), href: link({ page: 'service', name }) }));
}

function recent(): Target[] {
  return recentTraces.value.map((trace) => ({ kind: 'Recent trace', label: trace.name || trace.id.slice(0, 8), detail: trace.id.slice(0, 8), href: link({ page: 'trace', id: trace.id }) }));
}

function saved(): Target[] {
  return savedSearches.value.map((s) => ({ kind: 'Saved search', label: s.name, detail: rangeText(s.url), href: base + s.url }));
}

/** What the text itself means: a trace or a query. */
function literal(typed: string): Target[] {
  if (/^\s*\{/.test(typed)) return [{ kind: 'Search', label: typed.trim(), href: link({ page: 'explore' }, { q: typed.trim() }) }];
  const ref = parseTraceRef(typed);
  if (!ref) return [];
  return [{ kind: 'Trace', label: t('Open trace {trace}', { trace: ref.trace }), detail: ref.span && t('span {span}', { span: ref.span }), href: link({ page: 'trace', id: ref.trace }, { span: ref.span }) }];
}

/** Searches spans for a text. */
function offered(typed: string): Target[] {
  const q = searchOf(typed);
  return q.startsWith('{ "') ? [{ kind: 'Search', label: q, detail: t('spans with this text'), href: link({ page: 'explore' }, { q }) }] : [];
}

/** What the list needs of the field. */
export interface PaletteListProps {
  typed: string;
  /** Index of the chosen target. Beyond an end of the list, it continues at the other end. */
  index: number;
  /** Enter was pressed and not yet handled. That can be before the list was loaded. */
  entered: boolean;
  onEntered: () => void;
  onIndex: (index: number) => void;
  /** A row is chosen, or no longer. */
  onChosen: (chosen: boolean) => void;
  onClose: () => void;
}

/** What the jump box offers: pages, services, recent traces, trace ids and queries. */
export function PaletteList({ typed, index, entered, onEntered, onIndex, onChosen, onClose }: PaletteListProps) {
  const list = useRef<HTMLUListElement>(null);
  const names = useRequest<Names>('values', { key: 'service', prefix: '', limit: maxServices }, { maxAge: cacheAge });
  const more = useRequest<Names>(names.data?.more && typed.trim() ? 'values' : null, { key: 'service', text: typed.trim(), limit: maxTargets }, { maxAge: cacheAge });
  const targets = useMemo(() => {
    const known = [...new Set([...(names.data?.names ?? []), ...(more.data?.names ?? [])])];
    const found = bestTargets([...pages(), ...saved(), ...recent(), ...services(known)], typed, maxTargets);
    const own = literal(typed);
    // A short word such as "cafe" is hex, too: names come first.
    return /^\w{1,7}$/.test(typed.trim()) ? [...found, ...own, ...offered(typed)] : [...own, ...found, ...offered(typed)];
  }, [typed, names.data, more.data]);
  const n = targets.length;
  const at = ((index % n) + n) % n; // NaN without targets
  useLayoutEffect(() => onChosen(n > 0), [n > 0]);
  useEffect(() => list.current!.children[at]?.scrollIntoView({ block: 'nearest' }), [at]);
  const go = (target: Target | undefined): void => {
    if (!target) return;
    onClose();
    visit(target.href);
  };
  const early = useRef(entered); // Enter was pressed before the list was shown: it can be for a service
  const loading = names.loading || more.loading;
  useLayoutEffect(() => {
    early.current &&= entered;
    if (!entered || (early.current && loading && literal(typed).length === 0)) return;
    onEntered();
    go(targets[at]);
  }, [entered, loading]);
  return (
    <>
      <ul ref={list} id="palette-list" role="listbox" aria-label={t('Targets')} class={css.list}>
        {targets.map((item, i) => <Row key={item.kind + item.href} target={item} id={i === at ? `palette-${index}` : undefined} onSelect={() => go(item)} onHover={() => onIndex(i)} />)}
      </ul>
      {targets[0]?.kind === 'Search' && <p class={css.none}><Text of="Or paste a trace ID, a {traceparent} or a link to a trace." traceparent={<code>traceparent</code>} /></p>}
      {names.error && <p class={css.none}>{t('Services are not listed: {message}', { message: names.error.message })}</p>}
    </>
  );
}

const kinds: Record<Target['kind'], string> = { Page: t('Page'), Service: t('Service'), 'Recent trace': t('Recent trace'), Trace: t('Trace'), Search: t('Search'), 'Saved search': t('Saved search') };

const icons: Record<Exclude<Target['kind'], 'Service'>, IconName> = { Page: 'right', 'Recent trace': 'clock', Trace: 'link', Search: 'search', 'Saved search': 'pin' };

/** The chosen row has an id. */
function Row({ target, id, onSelect, onHover }: { target: Target; id: string | undefined; onSelect: () => void; onHover: () => void }) {
  return (
    <li id={id} role="option" aria-selected={!!id} class={css.row} onClick={onSelect} onMouseMove={onHover}>
      <span class={css.icon}>{target.kind === 'Service' ? <ServiceSwatch name={target.label} /> : <Icon name={icons[target.kind]} />}</span>
      <span class={css.label}>{target.label}</span>
      {target.detail && <span class={css.detail}>{target.detail}</span>}
      <span class={css.kind}>{kinds[target.kind]}</span>
    </li>
  );
}
