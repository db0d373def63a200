// The URL holds everything a user may share. This is the only module that reads and writes it.

import { computed, signal } from '@preact/signals';
import { comparisons } from '../query/any-type';

/** The pages and their own parameters. */
export type Route =
  | { page: 'overview' }
  | { page: 'explore' }
  | { page: 'trace'; id: string }
  | { page: 'compare'; a: string; b: string }
  | { page: 'service'; name: string }
  | { page: 'services' }
  | { page: 'map' }
  | { page: 'open'; id?: string } // a trace of an open file, or two: a...b
  | { page: 'status' }
  | { page: 'errors' }
  | { page: 'sampling' }
  | { page: 'unknown'; path: string };

/** A time range: each end is relative (`now`, `now-1h`) or an ISO 8601 time in UTC. */
export interface Range {
  from: string;
  to: string;
}

/** A box on the heatmap: milliseconds since the epoch, and nanoseconds of duration. */
export interface Box {
  t0: number;
  t1: number;
  d0: number;
  d1: number;
}

/** The trace that the page `/sampling` explains: members are "" if unknown. */
export interface Ask {
  service: string;
  operation: string;
  trace: string;
}

/** A selection that has a name instead of a box. */
export type NamedSelection = 'errors' | 'slowest';

function namedSelection(text: string | null): NamedSelection | null {
  return text === 'errors' || text === 'slowest' ? text : null;
}

/** Everything in the URL. An absent member has its default. */
export interface View {
  route: Route;
  /** Search language. */
  q: string;
  range: Range;
  zone: 'utc' | 'local' | '';
  theme: 'light' | 'dark' | '';
  embed: boolean;
  /** Explore: what durations and counts are of. */
  of: 'traces' | 'spans';
  /** Explore: the selected box of the heatmap, the traces (spans) with errors, or the slowest 5 % of them. */
  sel: Box | NamedSelection | null;
  /** Explain: what the selection is compared with; "" for all others. */
  base: '' | 'time' | 'day';
  /** Explore: the earlier time of a comparison of two; "" for one day earlier. */
  against: string;
  cols: string[];
  /** Keys by which spans are grouped, named as in searches. */
  by: string[];
  sort: string;
  limit: number;
  /** Chosen group of errors. */
  error: string;
  /** Explore: show traces as they arrive. */
  live: boolean;
  /** Page of a service: the marked operation. */
  operation: string;
  /** Page of a service: the kind of its spans, named as a role; "" for its main one. */
  kind: string;
  /** Chosen tab of a page, "" for its first one. */
  tab: string;
  /** Trace page. */
  span: string;
  /** The search that led to the trace: what it found is marked. */
  search: string;
  zoom: [number, number] | null;
  find: string;
  /** Show only matching spans. */
  only: boolean;
  /** Key of the chosen part of the sentence: show only its spans. */
  part: string;
  /** Minimum duration of shown spans in nanoseconds. */
  min: number;
  /** Deepest unfolded level, -1 for the default. */
  fold: number;
  /** Span that is shown as root. */
  root: string;
  path: boolean;
  skew: boolean;
  /** Idle time on time axes: left out, in full length, or as the page chooses. */
  idle: '' | 'short' | 'full';
  /** Attribute keys shown in rows. */
  pins: string[];
  /** Map: the service in focus. */
  focus: string;
  /** Map: calls between the focus and other services, 0 for all. */
  depth: number;
  /** Map: minimum number of calls per second of an edge; 0 lets the page choose, a negative number shows all. */
  least: number;
  /** Map: names of groups whose services are shown. */
  groups: string[];
  /** Map: the selected service, or the two services of the selected edge. */
  pick: string[];
  /** Compare page: also rows that did not change. */
  all: boolean;
  /** Explore: saved searches that the link carries. */
  saved: string;
  /** Sampling: the missing trace. */
  ask: Ask;
  /** Options of the original's embed mode. */
  embedOptions: Record<string, string>;
}

/** Default time range. */
export const defaultRange: Range = { from: 'now-1h', to: 'now' };

/** The view of an empty URL for a route. */
export function emptyView(route: Route): View {
  return {
    route, q: '', range: defaultRange, zone: '', theme: '', embed: false, of: 'traces', sel: null, cols: [], by: [], sort: '', limit: 0, error: '', live: false, operation: '', kind: '', tab: '',
    base: '', against: '',
    span: '', search: '', zoom: null, find: '', only: false, part: '', min: 0, fold: -1, root: '', path: true, skew: true, idle: '', pins: [], all: false, focus: '', depth: 0, least: 0, groups: [], pick: [], saved: '', ask: { service: '', operation: '', trace: '' }, embedOptions: {},
  };
}

/** Path of the application without a trailing slash: "" or, for example, "/tracing". */
export const base = typeof document === 'undefined' ? '' : new URL(document.baseURI).pathname.replace(/\/[^/]*$/, '');

function parseRoute(path: string): Route {
  const parts = path.split('/').filter(Boolean).map(decode);
  const [first = '', second = '', third] = parts;
  if (third !== undefined && first !== 'services') return { page: 'unknown', path };
  switch (first) {
    case '': return { page: 'overview' };
    case 'search': return second ? { page: 'unknown', path } : { page: 'explore' };
    case 'trace': return parseTraceRoute(second, path);
    case 'services': return second ? { page: 'service', name: parts.slice(1).join('/') } : { page: 'services' };
    case 'monitor': return { page: 'services' };
    case 'dependencies': return { page: 'map' };
    case 'open': return second ? { page: 'open', id: second } : { page: 'open' };
    case 'status': return { page: 'status' };
    case 'errors': return second ? { page: 'unknown', path } : { page: 'errors' };
    case 'sampling': return { page: 'sampling' };
  }
  return { page: 'unknown', path };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function parseTraceRoute(id: string, path: string): Route {
  const dots = id.indexOf('...');
  if (dots >= 0) return { page: 'compare', a: id.slice(0, dots), b: id.slice(dots + 3) };
  return id ? { page: 'trace', id } : { page: 'unknown', path };
}

function formatRoute(r: Route): string {
  const e = encodeURIComponent;
  switch (r.page) {
    case 'overview': return '/';
    case 'explore': return '/search';
    case 'trace': return `/trace/${e(r.id)}`;
    case 'compare': return `/trace/${e(r.a)}...${e(r.b)}`;
    case 'service': return `/services/${e(r.name)}`;
    case 'services': return '/services';
    case 'map': return '/dependencies';
    case 'open': return r.id ? `/open/${e(r.id)}` : '/open';
    case 'status': return '/status';
    case 'errors': return '/errors';
    case 'sampling': return '/sampling';
    case 'unknown': return r.path;
  }
}

/** Reads a URL below `base`. */
export function parse(url: URL, basePath = base): View {
  const path = url.pathname.startsWith(basePath + '/') ? url.pathname.slice(basePath.length) : url.pathname === basePath ? '/' : url.pathname;
  const p = url.searchParams;
  const v = emptyView(parseRoute(path));
  // The original's page for one service.
  if (/^\/monitor\/?$/.test(path) && p.get('service')) v.route = { page: 'service', name: p.get('service')! };
  const zone = p.get('tz');
  const theme = p.get('theme');
  v.q = p.get('q') ?? '';
  v.range = { from: p.get('from') || defaultRange.from, to: p.get('to') || defaultRange.to };
  v.zone = zone === 'utc' || zone === 'local' ? zone : '';
  v.theme = theme === 'light' || theme === 'dark' ? theme : '';
  v.embed = p.get('embed') === '1';
  v.of = p.get('of') === 'spans' ? 'spans' : 'traces';
  v.sel = namedSelection(p.get('sel')) ?? parseBox(p.get('sel'));
  const base = p.get('base');
  v.base = base === 'time' || base === 'day' ? base : '';
  v.against = p.get('against') ?? '';
  v.cols = list(p.get('cols'));
  v.by = list(p.get('by'));
  v.sort = p.get('sort') ?? '';
  v.limit = natural(p.get('limit'), 0);
  v.error = p.get('error') ?? '';
  v.live = p.get('live') === '1';
  v.operation = v.route.page === 'service' ? p.get('operation') ?? '' : '';
  v.kind = v.route.page === 'service' ? p.get('kind') ?? '' : '';
  v.tab = p.get('tab') ?? '';
  v.span = p.get('span') ?? '';
  v.search = p.get('search') ?? '';
  v.zoom = parseZoom(p.get('zoom'));
  v.find = p.get('find') ?? '';
  v.only = p.get('only') === '1';
  v.part = p.get('part') ?? '';
  v.min = natural(p.get('min'), 0);
  v.fold = natural(p.get('fold'), -1);
  v.root = p.get('root') ?? '';
  v.path = p.get('path') !== '0';
  v.skew = p.get('skew') !== '0';
  const idle = p.get('idle');
  v.idle = idle === 'short' || idle === 'full' ? idle : '';
  v.pins = list(p.get('pins'));
  v.all = p.get('all') === '1';
  v.focus = p.get('focus') ?? '';
  v.depth = natural(p.get('depth'), 0);
  v.least = p.get('least') === 'all' ? -1 : positive(p.get('least'));
  v.groups = list(p.get('groups'));
  v.pick = list(p.get('pick')).slice(0, 2);
  v.saved = v.route.page === 'explore' ? p.get('saved') ?? '' : '';
  if (v.route.page === 'sampling') v.ask = { service: p.get('service') ?? '', operation: p.get('operation') ?? '', trace: p.get('trace') ?? '' };
  translateOriginal(p, v);
  return v;
}

/** Path and query of a view, below `base`. Defaults are left out. */
export function format(v: View, basePath = base): string {
  const p = new URLSearchParams();
  const set = (key: string, value: string, standard = ''): void => {
    if (value !== standard) p.set(key, value);
  };
  set('q', v.q);
  set('from', v.range.from, defaultRange.from);
  set('to', v.range.to, defaultRange.to);
  set('tz', v.zone);
  set('theme', v.theme);
  set('embed', v.embed ? '1' : '');
  set('of', v.of, 'traces');
  set('sel', typeof v.sel === 'string' ? v.sel : v.sel ? [v.sel.t0, v.sel.t1, v.sel.d0, v.sel.d1].map(Math.round).join(',') : '');
  set('base', v.base);
  set('against', v.against);
  set('cols', v.cols.map(quoteItem).join(','));
  set('by', v.by.map(quoteItem).join(','));
  set('sort', v.sort);
  set('limit', v.limit ? String(v.limit) : '');
  set('error', v.error);
  set('live', v.live ? '1' : '');
  if (v.route.page === 'service') {
    set('operation', v.operation);
    set('kind', v.kind);
  }
  set('tab', v.tab);
  set('span', v.span);
  set('search', v.search);
  set('zoom', v.zoom ? v.zoom.map((x) => String(+x.toFixed(12))).join(',') : '');
  set('find', v.find);
  set('only', v.only ? '1' : '');
  set('part', v.part);
  set('min', v.min ? String(v.min) : '');
  set('fold', v.fold >= 0 ? String(v.fold) : '');
  set('root', v.root);
  set('path', v.path ? '' : '0');
  set('skew', v.skew ? '' : '0');
  set('idle', v.idle);
  set('pins', v.pins.map(quoteItem).join(','));
  set('all', v.all ? '1' : '');
  set('focus', v.focus);
  set('depth', v.depth ? String(v.depth) : '');
  set('least', v.least ? (v.least < 0 ? 'all' : String(v.least)) : '');
  set('groups', v.groups.map(quoteItem).join(','));
  set('pick', v.pick.map(quoteItem).join(','));
  set('saved', v.saved);
  if (v.route.page === 'sampling') for (const [key, value] of Object.entries(v.ask)) set(key, value as string);
  if (v.embed) for (const [key, value] of Object.entries(v.embedOptions)) p.set(key, value);
  const query = p.toString();
  return basePath + formatRoute(v.route) + (query ? '?' + query : '');
}

/** Commas within items of a list are escaped once more. */
function quoteItem(item: string): string {
  return item.replace(/[%,]/g, encodeURIComponent);
}

function list(text: string | null): string[] {
  return text ? text.split(',').filter(Boolean).map(decode) : [];
}

function natural(text: string | null, otherwise: number): number {
  return text && /^\d{1,16}$/.test(text) ? Number(text) : otherwise;
}

function positive(text: string | null): number {
  const n = Number(text);
  return n > 0 && Number.isFinite(n) ? n : 0;
}

function parseBox(text: string | null): Box | null {
  const n = (text ?? '').split(',').map(Number);
  if (n.length !== 4 || n.some((x) => !Number.isFinite(x)) || !text) return null;
  const [t0, t1, d0, d1] = n;
  return t0 < t1 && d0 < d1 && d0 >= 0 ? { t0, t1, d0, d1 } : null;
}

function parseZoom(text: string | null): [number, number] | null {
  const n = (text ?? '').split(',').map(Number);
  return n.length === 2 && n[0] >= 0 && n[0] < n[1] && n[1] <= 1 ? [n[0], n[1]] : null;
}

/** Translates the parameters of Jaeger UI. */
function translateOriginal(p: URLSearchParams, v: View): void {
  if (p.has('uiFind')) v.find ||= p.get('uiFind')!;
  if (p.has('uiEmbed')) {
    v.embed = p.get('uiEmbed') === 'v0';
    for (const [key, value] of p) if (/^ui(Embed|Search|Timeline)/.test(key)) v.embedOptions[key] = value;
  }
  if (v.route.page === 'service' || v.route.page === 'services') monitorRange(p, v);
  if (v.route.page !== 'explore') return;
  originalRange(p, v);
  if (!v.q) v.q = originalQuery(p);
}

/** Parameters of the original's monitor page: `lookback` (or `timeframe`) and `endTs` are milliseconds. */
function monitorRange(p: URLSearchParams, v: View): void {
  const length = natural(p.get('lookback') ?? p.get('timeframe'), 0);
  if (p.has('from') || p.has('to') || length < 1000) return;
  const end = natural(p.get('endTs'), 0);
  v.range = end > 0 ? { from: isoOf(end - length), to: isoOf(end) } : { from: `now-${Math.min(999_999, Math.round(length / 1000))}s`, to: 'now' };
}

/** `start` and `end` are microseconds; `lookback` is like `2h` or `custom`. */
function originalRange(p: URLSearchParams, v: View): void {
  const lookback = p.get('lookback') ?? '';
  if (p.has('from') || p.has('to')) return;
  if (/^\d+[smhdw]$/.test(lookback)) {
    v.range = { from: 'now-' + lookback, to: 'now' };
    return;
  }
  const [start, end] = [natural(p.get('start'), 0), natural(p.get('end'), 0)];
  if (start > 0) v.range = { from: isoOf(start / 1000), to: end > 0 ? isoOf(end / 1000) : 'now' };
}

function isoOf(ms: number): string {
  const d = new Date(ms);
  return Number.isNaN(d.getTime()) ? 'now' : d.toISOString();
}

/** The conditions of `service`, `operation`, `tags` and durations in the search language. */
function originalQuery(p: URLSearchParams): string {
  const conditions: string[] = [];
  const text = (s: string): string => JSON.stringify(s);
  if (p.get('service')) conditions.push(`service = ${text(p.get('service')!)}`);
  if (p.get('operation') && p.get('operation') !== 'all') conditions.push(`name = ${text(p.get('operation')!)}`);
  for (const [key, value] of originalTags(p)) conditions.push(tagCondition(key, value));
  if (p.get('minDuration')) conditions.push(`duration >= ${p.get('minDuration')!.replace(/\s+/g, '')}`);
  if (p.get('maxDuration')) conditions.push(`duration <= ${p.get('maxDuration')!.replace(/\s+/g, '')}`);
  return conditions.length ? `{ ${conditions.join(' && ')} }` : '';
}

/** `tags` is a JSON object, `tag` is `key:value`, repeatable. */
function originalTags(p: URLSearchParams): [string, string][] {
  const tags: [string, string][] = p.getAll('tag').filter((t) => t.includes(':')).map((t) => [t.slice(0, t.indexOf(':')), t.slice(t.indexOf(':') + 1)]);
  try {
    const o: unknown = JSON.parse(p.get('tags') ?? '{}');
    if (o && typeof o === 'object') tags.push(...Object.entries(o).map(([k, x]): [string, string] => [k, String(x)]));
  } catch {
    // A tag that is not JSON has no meaning in the original either.
  }
  return tags;
}

function tagCondition(key: string, value: string): string {
  if (key === 'error') return value === 'true' ? 'error' : '!error';
  const fieldOf: Record<string, string> = { 'span.kind': 'kind', 'span.status': 'status' };
  const field = fieldOf[key] ?? ('.' + (/^[\p{L}\d_.\-/:@]+$/u.test(key) ? key : JSON.stringify(key)));
  const all = comparisons(field, '=', value);
  return all[1] ? `(${all.join(' || ')})` : all[0];
}

const inBrowser = typeof window !== 'undefined';

/** What the current URL says. Change it with `navigate`. */
export const view = signal<View>(parse(new URL(inBrowser ? window.location.href : 'http://localhost/')));

/** The page of the current URL, for what does not depend on the rest of it. */
export const route = computed(() => view.value.route);

/** Goes to a view, or changes members of the current one. `replace` adds no entry to the history. */
export function navigate(change: Partial<View>, options: { replace?: boolean } = {}): void {
  const next = { ...view.value, ...change };
  const url = format(next);
  if (options.replace) history.replaceState(null, '', url);
  else if (url !== location.pathname + location.search) history.pushState(null, '', url);
  view.value = next;
}

/** URL of another page. The time range, zone, theme and embed mode stay; `change` sets the rest. */
export function link(route: Route, change: Partial<View> = {}): string {
  return format(linked(route, change));
}

/** The view behind `link`. */
export function linked(route: Route, change: Partial<View> = {}): View {
  const { range, zone, theme, embed, embedOptions } = view.value;
  return { ...emptyView(route), range, zone, theme, embed, embedOptions, ...change };
}

/** Goes to a URL of the application, such as that of `link`, as a click on it would. */
export function visit(href: string): void {
  history.pushState(null, '', href);
  view.value = parse(new URL(location.href));
  scrollTo(0, 0);
}

/** Follows clicks on links within the application, and the browser's back and forward. Returns a function that stops it. */
export function startRouter(): () => void {
  const pop = (): void => {
    view.value = parse(new URL(location.href));
  };
  const click = (e: MouseEvent): void => {
    const a = (e.target as Element | null)?.closest?.('a[href]') as HTMLAnchorElement | null;
    if (!a || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey || a.target || a.hasAttribute('download')) return;
    const url = new URL(a.href);
    if (url.origin !== location.origin || !url.pathname.startsWith(base + '/') || url.pathname.startsWith(base + '/api/') || (url.hash && url.pathname === location.pathname)) return;
    e.preventDefault();
    visit(url.href);
  };
  addEventListener('popstate', pop);
  addEventListener('click', click);
  return () => {
    removeEventListener('popstate', pop);
    removeEventListener('click', click);
  };
}
