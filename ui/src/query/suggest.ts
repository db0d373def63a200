// Completions for a place in a search: words of the language at once, names and values from the server.

import { get } from '../api/client';
import type { Language, Names } from '../api/types';
import { t } from '../shell/text';
import { operatorsFor, type Context } from './complete';
import { conditionsOn } from './edit';
import { canonical, fieldType, formatCondition, formatField, quote, wordsOf } from './field';

/** One completion. */
export interface Suggestion {
  /** What is shown. */
  text: string;
  /** What replaces the range of the context. With `whole`, the range begins at the field. */
  insert: string;
  whole?: boolean;
  /** What it is: a type, a meaning. */
  note: string;
  /** Another completion follows at once. */
  more: boolean;
}

/** The completions, and what is known about them. */
export interface Suggestions {
  list: Suggestion[];
  /** What the list shows. */
  title: string;
  /** There are more than these. */
  more: boolean;
}

/** Time range of the search, as parameters of requests. */
export interface Period {
  start: string;
  end: string;
}

const meanings: Record<string, string> = {
  '=': t('equal'), '!=': t('not equal'), '=~': t('matches the regular expression'), '!~': t('does not match'), '>': t('more than'), '>=': t('at least'), '<': t('less than'), '<=': t('at most'),
  '>>': t('descendants'), '&&': t('and'), '||': t('or'),
};

/** Completions that need no request; null if the server has them. */
export function localSuggestions(c: Context): Suggestions | null {
  const place = (text: string): number => text.toLowerCase().indexOf(c.prefix.toLowerCase());
  const of = (title: string, list: [text: string, insert: string, note: string, more?: boolean][]): Suggestions => ({
    title, more: false,
    // Tab takes the first: those that begin with the prefix.
    list: list.filter(([text]) => place(text) >= 0).sort(([a], [b]) => Math.min(place(a), 1) - Math.min(place(b), 1)).map(([text, insert, note, more]) => ({ text, insert, note, more: !!more })),
  });
  switch (c.kind) {
    case 'operator': return of(t('Operators for {field}', { field: c.field }), operatorsFor(c.field).map((op) => [op, op + ' ', meanings[op], true]));
    case 'logical': return of(t('Join conditions'), [['&&', '&& ', t('both conditions hold'), true], ['||', '|| ', t('one of the conditions holds'), true]]);
    case 'set': return of(t('Spans'), [['{ }', '{ ', t('spans with these conditions'), true]]);
    case 'structural': return of(t('After a set of spans'), [['>>', '>> { ', t('descendants of these spans'), true], ['>', '> { ', t('children of these spans'), true],
      ['&&', '&& { ', t('traces with both'), true], ['||', '|| { ', t('traces with one of them'), true], ['| select(', '| select(', t('more columns'), true]]);
    case 'stage': return of(t('After a set of spans'), stages.map((s) => [s.trim(), s, '', true]));
    case 'value': return localValues(c, of);
    case 'field': return null;
  }
}

const stages = [
  'rate() ', 'count_over_time() ', ...['sum', 'avg', 'min', 'max', 'quantile', 'histogram'].map((f) => f + '_over_time('),
  'compare({ ', 'topk(', 'count() ', 'by(', 'select(',
];

const durations = ['1ms', '10ms', '100ms', '500ms', '1s', '5s', '30s', '1m'];

function localValues(c: Context, of: (title: string, list: [string, string, string][]) => Suggestions): Suggestions | null {
  const title = t('Values of {field}', { field: canonical(c.field) });
  const words = wordsOf(c.field);
  if (canonical(c.field) === 'text') return of(title, []);
  if (words.length) return of(title, words.map((w) => [w, w, '']));
  if (fieldType(c.field) === 'boolean') return of(title, ['true', 'false'].map((w) => [w, w, '']));
  if (fieldType(c.field) === 'duration') return of(title, durations.map((w) => [w, w, '']));
  return null;
}

const maxSuggestions = 50;

/** Names or values from the server, limited to what the rest of the search can match. */
export async function remoteSuggestions(c: Context, period: Period, language: Language | undefined, signal: AbortSignal): Promise<Suggestions> {
  const common = { text: c.prefix, limit: maxSuggestions, q: c.rest, ...period };
  const options = { signal, maxAge: 60_000 };
  if (c.kind === 'field') {
    const { data } = await get<Names>('keys', common, options);
    const type = (name: string): string => language?.fields.find((f) => f.name === name)?.type ?? t('attribute');
    const list = data.names.map((n): Suggestion => ({ text: n, insert: fieldInsert(n), note: type(n), more: fieldType(n) !== 'boolean' }));
    return { title: titleOf(t('Fields'), c, data), more: data.more, list };
  }
  // Operations are listed by service, or by what occurs on matching spans.
  const [service] = conditionsOn(c.rest, 'service').filter((s) => s.op === '=');
  const operations = canonical(c.field) === 'name' ? { service: service?.value, q: c.rest || '{}' } : {};
  const { data } = await get<Names>('values', { ...common, ...operations, key: formatField(c.field) }, options);
  return { title: titleOf(t('Values of {field}', { field: canonical(c.field) }), c, data), more: data.more, list: data.names.map((n) => ({ text: n, ...valueInsert(c, n), note: '', more: false })) };
}

/** A value that may be of several types takes a condition in parentheses. */
function valueInsert(c: Context, value: string): { insert: string; whole?: boolean } {
  const insert = formatCondition(c.field, c.op, value);
  return c.field && insert[0] === '(' ? { insert, whole: true } : { insert: quote(value) };
}

/** The server quotes names where needed. */
function fieldInsert(name: string): string {
  return fieldType(name) === 'boolean' ? name : name + ' ';
}

function titleOf(what: string, c: Context, data: Names): string {
  return data.restricted && c.rest ? t('{what} on spans that match the other conditions', { what }) : what;
}
