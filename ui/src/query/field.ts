// Names of fields and values, written so that the server reads them unchanged.

import { lex } from './lex';

/** Text in quotes, with escape sequences that the language knows. Lone surrogates become U+FFFD. */
export function quote(text: string): string {
  return JSON.stringify(text.replace(/[\ud800-\udfff]/gu, '\ufffd'));
}

/** Scopes of attributes, with the dot after them. */
export const scopes = ['.', 'span.', 'resource.', 'instrumentation.', 'event.', 'link.'] as const;

/** Other names of fields. */
const aliases: Record<string, string> = {
  'span:name': 'name', 'service.name': 'service', '.service.name': 'service', 'resource.service.name': 'service', 'span:statusMessage': 'statusMessage',
  'span:kind': 'kind', 'span:status': 'status', 'span:duration': 'duration', 'trace:duration': 'trace.duration', traceDuration: 'trace.duration',
  'trace:rootService': 'trace.rootService', rootServiceName: 'trace.rootService', 'trace:rootName': 'trace.rootName', rootName: 'trace.rootName',
};

/** What a field can be compared with. */
export type FieldType = 'text' | 'word' | 'duration' | 'boolean' | 'attribute';

const types: Record<string, FieldType> = {
  service: 'text', name: 'text', statusMessage: 'text', 'instrumentation:name': 'text', 'instrumentation:version': 'text', 'event:name': 'text',
  'span:parentID': 'text', 'trace.rootService': 'text', 'trace.rootName': 'text', kind: 'word', status: 'word', duration: 'duration',
  'trace.duration': 'duration', error: 'boolean', root: 'boolean',
};

/** A name without quotes, as the lexer returns it; null if the text is not written as one name. */
function unquoted(name: string): string | null {
  const [t, ...more] = lex(name);
  return t?.kind === 'word' && t.begin === 0 && t.end === name.length && more.length === 0 ? t.text : null;
}

/** The one name of a field that has several, as in answers of the server: `service.name` is `service`, and `http.route` is `.http.route`. */
export function canonical(name: string): string {
  const key = unquoted(formatField(name)) ?? name;
  if (aliases[key]) return aliases[key];
  if (types[key]) return key;
  const scope = scopes.find((s) => key.startsWith(s));
  return scope ? attribute(scope, key.slice(scope.length)) : key.includes('.') ? attribute('.', key) : key;
}

/** Name of a field for people: without quotes and without the dot that stands for all scopes. */
export function fieldLabel(name: string): string {
  return (unquoted(name) ?? name).replace(/^\.(?=.)/, '');
}

/** Type of the field with a name. */
export function fieldType(name: string): FieldType {
  return types[canonical(name)] ?? 'attribute';
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

const words: Record<string, string[]> = {
  kind: ['server', 'client', 'producer', 'consumer', 'internal', 'unspecified'],
  status: ['error', 'ok', 'unset'],
};

/** All values of a field that has few, otherwise none. */
export function wordsOf(field: string): string[] {
  return words[canonical(field)] ?? [];
}

const isNumber = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Writes a condition. `op` is as in Condition of the parser. With `=`, values of attributes are quoted, which finds numbers and booleans with that text, too. */
export function formatCondition(field: string, op: string, value = ''): string {
  const name = formatField(field);
  const type = fieldType(field);
  if (op === 'exists' || op === '!exists') return `${op}(${name})`;
  if (type === 'boolean') return ((op === '=') === (value === 'true') ? '' : '!') + name;
  if (op === 'not') return `!(${name} = ${formatValue(field, '=', value)})`;
  return `${name} ${op} ${formatValue(field, op, value)}`;
}

function formatValue(field: string, op: string, value: string): string {
  if (fieldType(field) === 'duration' || wordsOf(field).includes(value)) return value;
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
