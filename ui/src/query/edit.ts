// Changes of a search that leave the rest of its text as it is.

import { canonical, durationText, fieldType, formatCondition, formatField } from './field';
import { scopes } from './field-table';
import { isComparison, isOp, lex, type Token } from './lex';
import { isOn, parseQuery, type Condition, type Query, type SetNode, type Spans } from './parse';

/** The conditions of a search of the form `{ a && b }`; null for any other form. */
export function conditionsOf(q: Query): Condition[] | null {
  if (!q.set) return [];
  return q.set.type === 'spans' ? q.set.conditions : null;
}

/** The sets of spans that a search selects: of `A >> B`, those of B. */
function selecting(n: SetNode): Spans[] {
  if (n.type === 'spans') return [n];
  const right = n.right ? selecting(n.right) : [];
  return /^!?[<>~]/.test(n.op) ? right : [...selecting(n.left), ...right];
}

function splice(text: string, begin: number, end: number, by: string): string {
  return text.slice(0, begin) + by + text.slice(end);
}

function insert(text: string, s: Spans, condition: string): string {
  const body = text.slice(s.begin + 1, s.end - 1).trim();
  const before = body === '' ? '' : s.conditions ? body + ' && ' : `(${body}) && `;
  return splice(text, s.begin, s.end, `{ ${before}${condition} }`);
}

const opposite: Record<string, string[]> = { '=': ['!=', 'not', '!exists'], '!=': ['='], not: ['='], exists: ['!exists'], contains: ['!contains'], '!contains': ['contains'], '!exists': ['exists', '=', 'not', '!='] };

/** Selects only those spans of a search for which a further condition holds. A condition that says the opposite is removed. A search with stages gets a further one; a text that is not a valid search stays unchanged. */
export function addCondition(text: string, field: string, op: string, value = ''): string {
  const condition = formatCondition(field, op, value);
  const q = parseQuery(text);
  if (!q) return withStage(text, condition);
  if (!q.set) return `{ ${condition} }`;
  let out = text;
  for (const spans of selecting(q.set).sort((a, b) => b.begin - a.begin)) {
    const [same, contrary] = related(spans, field, op, value);
    if (same) continue;
    out = contrary ? splice(out, contrary.begin, contrary.end, condition) : insert(out, spans, condition);
  }
  return out;
}

/** Selects only those spans of a search for which further conditions hold, written as within braces: `a = 1 && !exists(b)`. */
export function addText(text: string, conditions: string): string {
  const q = parseQuery(text);
  if (!q) return withStage(text, conditions);
  if (!q.set) return `{ ${conditions} }`;
  return selecting(q.set).sort((a, b) => b.begin - a.begin).reduce((out, spans) => insert(out, spans, conditions), text);
}

/** Whether a text that is not a single search may be one with stages. */
export const hasStages = (text: string): boolean => lex(text).some((t) => isOp(t, '|'));

function withStage(text: string, conditions: string): string {
  return hasStages(text) ? `${text} | { ${conditions} }` : text;
}

/** The condition that says the same, and one that says the opposite. */
function related(s: Spans, field: string, op: string, value: string): (Condition | undefined)[] {
  const on = (s.conditions ?? []).filter((c) => isOn(c, field));
  const exists = op.endsWith('exists');
  return [
    on.find((c) => c.op === op && c.value === value),
    on.find((c) => opposite[op]?.includes(c.op) && (exists || c.op.endsWith('exists') || c.value === value)),
  ];
}

/** Removes a condition of a search of the form `{ a && b }`. */
export function removeCondition(text: string, c: Condition): string {
  const q = parseQuery(text);
  const all = q && conditionsOf(q);
  const i = all?.findIndex((x) => x.begin === c.begin) ?? -1;
  if (!q || !all || i < 0) return text;
  if (all.length === 1) return splice(text, q.set!.begin, q.set!.end, q.selectAt < text.length ? '{}' : '').trim();
  return i > 0 ? splice(text, all[i - 1].end, c.end, '') : splice(text, c.begin, all[1].begin, '');
}

/** Writes a condition in the place of another one. */
export function replaceCondition(text: string, c: Condition, field: string, op: string, value = ''): string {
  return splice(text, c.begin, c.end, formatCondition(field, op, value));
}

/** Sets the only condition on a field: replaces the first one, and removes further ones. An empty value removes all. */
export function setCondition(text: string, field: string, op: string, value: string): string {
  const on = conditionsOn(text, field);
  if (value === '') return on.reduceRight((t, c) => removeCondition(t, c), text);
  if (on.length === 0) return addCondition(text, field, op, value);
  const rest = on.slice(1).reduceRight((t, c) => removeCondition(t, c), text);
  return replaceCondition(rest, on[0], field, op, value);
}

/** The conditions on a field of a search of the form `{ a && b }`. */
export function conditionsOn(text: string, field: string): Condition[] {
  const q = parseQuery(text);
  return (q && conditionsOf(q))?.filter((c) => isOn(c, field)) ?? [];
}

/** The search without the conditions that only failed spans meet: `status = error` and `error`. */
export function withoutErrors(text: string): string {
  const failed = [...conditionsOn(text, 'status'), ...conditionsOn(text, 'error')].filter((c) => c.op === '=' && (c.value === 'error' || c.value === 'true'));
  return failed.sort((a, b) => b.begin - a.begin).reduce((t, c) => removeCondition(t, c), text);
}

/** The search with calls to services instead of spans of them, for services that have no spans of their own. */
export function callsInstead(text: string): string {
  const q = parseQuery(text);
  const on = q?.set ? selecting(q.set).flatMap((s) => s.conditions ?? []).filter((c) => isOn(c, 'service') && c.op === '=') : [];
  return on.sort((a, b) => b.begin - a.begin).reduce((t, c) => {
    const peers = ['peer.service', 'db.system.name', 'messaging.system'].map((f) => formatCondition(f, '=', c.value));
    return splice(t, c.begin, c.end, `(${peers.join(' || ')})`);
  }, text);
}

/** Sets the bounds of a field, each a duration of the language or "". */
export function setBounds(text: string, field: string, min: string, max: string): string {
  const bounds = conditionsOn(text, field).filter((c) => /^[<>]/.test(c.op));
  const rest = bounds.reduceRight((t, c) => removeCondition(t, c), text);
  const lower = min ? addCondition(rest, field, '>=', min) : rest;
  return max ? addCondition(lower, field, '<=', max) : lower;
}

/** The search without `| select(...)`. */
export function withoutSelect(text: string): string {
  const q = parseQuery(text);
  return q ? text.slice(0, q.selectAt).trimEnd() : text;
}

/** The search with further fields in `| select(...)`. */
export function withSelect(text: string, fields: string[]): string {
  const q = parseQuery(text);
  if (!q || fields.length === 0) return text;
  const names = new Map([...q.select, ...fields].map((f) => [canonical(f), formatField(f)]));
  return `${withoutSelect(text) || '{}'} | select(${[...names.values()].join(', ')})`;
}

/** Whether a token is a sign that a text is written in the language of searches. */
function isLanguage(t: Token): boolean {
  if (t.kind === 'operator') return isComparison(t) || ['&&', '||', '(', ')', '|', '!'].includes(t.text);
  return t.kind === 'quoted' || (t.kind === 'invalid' && /^["`]/.test(t.text));
}

/** The requests of all services. */
export const allRequests = '{ (kind = server || kind = consumer) }';

/** Puts braces around a search that has none, so that `duration > 1s` is valid. Plain text, which has no sign of the language, is searched for as such. */
export function searchOf(text: string): string {
  const trimmed = text.trim();
  const tokens = lex(trimmed);
  if (tokens.length === 0 || tokens.some((t) => isOp(t, '{') || isOp(t, '}'))) return trimmed;
  const [first] = tokens;
  const field = tokens.length === 1 && first.kind === 'word' && (fieldType(first.text) === 'boolean' || scopes.some((s) => first.text.startsWith(s)));
  if (!field && !tokens.some(isLanguage)) return search([formatCondition('text', 'contains', trimmed)]);
  const wrapped = `{ ${trimmed} }`;
  return parseQuery(wrapped) ? wrapped : trimmed;
}

/** A field and one of its values, as lists show them. */
export interface FieldValue {
  field: string;
  value: string;
}

/** The operation of a span. */
export interface Operation {
  service: string;
  name: string;
}

function search(conditions: string[]): string {
  return `{ ${conditions.join(' && ')} }`;
}

function operationConditions(o: Operation): string[] {
  return [formatCondition('service', '=', o.service), formatCondition('name', '=', o.name)];
}

/** Spans with a value. */
export function spansWith(f: FieldValue): string {
  return search([formatCondition(f.field, '=', f.value)]);
}

/** Spans of an operation without a value. */
export function spansWithout(f: FieldValue, o: Operation): string {
  return search([...operationConditions(o), formatCondition(f.field, 'not', f.value)]);
}

/** Spans of an operation. */
export function spansOf(o: Operation): string {
  return search(operationConditions(o));
}

/** Spans of a service that are not of an operation. */
export function spansBeside(o: Operation): string {
  return search([formatCondition('service', '=', o.service), formatCondition('name', 'not', o.name)]);
}

/** Spans of the same operation with the chosen values; of a failed span, failed ones. */
export function spansLike(span: Operation & { status: string }, chosen: FieldValue[] = []): string {
  return search([...operationConditions(span), ...(span.status === 'error' ? ['error'] : []), ...chosen.map((f) => formatCondition(f.field, '=', f.value))]);
}

/** A span of a pattern. */
export interface PatternSpan extends Operation {
  error: boolean;
  /** Nanoseconds. */
  duration: number;
  /** Position in the pattern of its nearest ancestor, which is before it, or -1. */
  above: number;
  /** Whether that is its parent. */
  child: boolean;
}

/**
 * A search for traces with spans that are below each other in the same way: `{ A } >> { B && duration > 800ms }`. The last
 * span of each branch is at least about as slow.
 */
export function patternOf(spans: PatternSpan[]): string {
  const isLast = (i: number): boolean => !spans.some((s) => s.above === i);
  const branch = (i: number): string => {
    const s = spans[i];
    const own = search([...operationConditions(s), ...(s.error ? ['error'] : []), ...(isLast(i) && s.duration > 0 ? [`duration > ${durationText(below(s.duration))}`] : [])]);
    return s.above < 0 ? own : `${branch(s.above)} ${s.child ? '>' : '>>'} ${own}`;
  };
  return spans.map((_, i) => i).filter(isLast).map(branch).join(' && ');
}

/** A round number below another one: 520 ms gives 500 ms, and 500 ms gives 450 ms. */
function below(n: number): number {
  const unit = 10 ** Math.floor(Math.log10(n));
  const round = Math.floor(n / unit) * unit;
  return Math.floor(round < n ? round : round - unit / 2);
}
