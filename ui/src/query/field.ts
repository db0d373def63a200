// Names of fields and values, written so that the server reads them unchanged.

import { comparisons } from './any-type';
import { fields, scopes, type FieldEntry } from './field-table';
import { lex } from './lex';

/** Text in quotes, with escape sequences that the language knows. Lone surrogates become U+FFFD. */
export function quote(text: string): string {
  return JSON.stringify(wellFormed(text));
}

function wellFormed(text: string): string {
  return text.replace(/[\ud800-\udfff]/gu, '\ufffd');
}

/** What a field can be compared with. */
export type FieldType = FieldEntry['type'] | 'attribute';

const known = new Map(fields.flatMap((f) => [f.name, ...f.aliases].map((name) => [name, f] as const)));

/** A name without quotes, as the lexer returns it; null if the text is not written as one name. */
function unquoted(name: string): string | null {
  const [t, ...more] = lex(name);
  return t?.kind === 'word' && t.begin === 0 && t.end === name.length && more.length === 0 ? t.text : null;
}

/** The one name of a field that has several, as in answers of the server: `service.name` is `service`, and `http.route` is `.http.route`. */
export function canonical(name: string): string {
  const key = unquoted(formatField(name)) ?? name;
  const field = known.get(key);
  if (field) return field.name;
  const scope = scopes.find((s) => key.startsWith(s));
  return scope ? attribute(scope, key.slice(scope.length)) : key.includes('.') ? attribute('.', key) : key;
}

/** Name of a field for people: without quotes and without the dot that stands for all scopes. */
export function fieldLabel(name: string): string {
  return (unquoted(name) ?? name).replace(/^\.(?=.)/, '');
}

/** Type of the field with a name. */
export function fieldType(name: string): FieldType {
  return known.get(canonical(name))?.type ?? 'attribute';
}

const plainKey = /^[\p{L}\p{Nd}_.\-/:@]+$/u;

/** Writes the attribute `key` in a scope, with quotes where the key needs them. */
export function attribute(scope: (typeof scopes)[number], key: string): string {
  return scope + (plainKey.test(key) ? key : quote(key));
}

/** Writes a name so that the server reads it as one field. What is already written as one stays; other text is quoted as the key of an attribute. */
export function formatField(name: string): string {
  if (unquoted(name) !== null) return name;
  const scope = scopes.find((s) => name.startsWith(s));
  return scope ? attribute(scope, name.slice(scope.length)) : attribute('.', name);
}

/** All values of a field that has few, otherwise none. */
export function wordsOf(field: string): string[] {
  return known.get(canonical(field))?.words ?? [];
}

const isNumber = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Writes a condition. `op` is as in Condition of the parser. An attribute whose value may be a number or a boolean is compared with the text as well. */
export function formatCondition(field: string, op: string, value = ''): string {
  const name = formatField(field);
  const type = fieldType(field);
  if (op === 'contains' || op === '!contains') return (op === 'contains' ? '' : '!') + quote(value);
  if (op === 'exists' || op === '!exists') return `${op}(${name})`;
  if (type === 'boolean') return ((op === '=') === (value === 'true') ? '' : '!') + name;
  const equal = op === 'not' ? '=' : op;
  const all = type === 'attribute' && /^!?=$/.test(equal) ? comparisons(name, equal, wellFormed(value)) : [`${name} ${equal} ${formatValue(field, op, value)}`];
  const text = all.join(' || ');
  return op === 'not' ? `!(${text})` : all[1] ? `(${text})` : text;
}

function formatValue(field: string, op: string, value: string): string {
  if (['duration', 'number'].includes(fieldType(field)) || wordsOf(field).includes(value)) return value;
  return /^[<>]/.test(op) && isNumber.test(value) ? value : quote(value);
}

/** Whether a text is a duration of the language: `1.5s`, `2m30s`. */
export function isDuration(text: string): boolean {
  return /^(?:\d+(?:\.\d+)?(?:ns|us|µs|μs|ms|s|m|h|d))+$/.test(text);
}

/** Rounds to three significant digits, with Math.floor or Math.ceil. */
export function round3(n: number, round: (x: number) => number): number {
  if (n < 1000) return round(n);
  const unit = 10 ** (Math.floor(Math.log10(n)) - 2);
  return round(n / unit) * unit;
}

/** Writes nanoseconds as an exact duration of the language: `1.5s`, `250us`. */
export function durationText(ns: number): string {
  const units: [number, string][] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'us']];
  const n = Math.round(ns);
  const [size, unit] = units.find(([u]) => n >= u && n % (u / 1e3) === 0) ?? [1, 'ns'];
  return n / size + unit;
}
