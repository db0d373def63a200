// What can stand at the caret of a search that is being written.

import { fieldType } from './field';
import { isComparison, isOp, lex, type Token } from './lex';

/** What completes the text at the caret. The range `begin` to `end` is replaced. */
export interface Context {
  kind: 'field' | 'operator' | 'value' | 'logical' | 'set' | 'structural' | 'stage';
  begin: number;
  end: number;
  /** Text in the range before the caret, without quotes. */
  prefix: string;
  /** Written name of the field, for operators and values; for values also where it begins, and the operator. */
  field: string;
  fieldBegin: number;
  op: string;
  /** The search without the condition at the caret, which limits what can match; "" for all spans. */
  rest: string;
}

/** Finds what can stand at a caret. */
export function contextAt(text: string, caret: number): Context {
  const before = lex(text.slice(0, caret));
  const last = before[before.length - 1];
  // A token that ends at the caret is being written, unless it is an operator.
  const current = last && last.end === caret && last.kind !== 'operator' ? last : undefined;
  const done = current ? before.slice(0, -1) : before;
  const begin = current ? current.begin : caret;
  const kind = kindAfter(done);
  const place = { begin, end: current ? endOf(text, current) : caret, prefix: current ? prefixOf(current) : '' };
  const [name, op] = done.slice(kind === 'value' ? -2 : kind === 'operator' ? -1 : done.length);
  const named = name?.kind === 'word';
  return { ...place, kind, field: named ? text.slice(name.begin, name.end) : '', fieldBegin: named ? name.begin : begin, op: op?.text ?? '', rest: restOf(text, done, place.end) };
}

/** End of the token in the whole text, of which `t` is the part before the caret. */
function endOf(text: string, t: Token): number {
  const whole = lex(text).find((x) => x.begin === t.begin);
  return !whole || whole.kind === 'invalid' ? t.end : whole.end;
}

function prefixOf(t: Token): string {
  return t.kind === 'invalid' ? t.text.replace(/^["`]/, '').replace(/\."/, '.') : t.text;
}

function kindAfter(done: Token[]): Context['kind'] {
  const last = done[done.length - 1];
  const braces = done.filter((t) => isOp(t, '{')).length - done.filter((t) => isOp(t, '}')).length;
  if (braces <= 0 && done.some((t) => isOp(t, '{'))) return outside(done, last);
  if (!last) return 'field';
  if (isComparison(last)) return 'value';
  if (isComparison(done[done.length - 2]) || isOp(last, ')')) return 'logical';
  if (last.kind === 'word') return last.text === 'exists' ? 'field' : 'operator';
  return last.kind === 'operator' ? 'field' : 'logical';
}

/** After the first set: after `|`, within the brackets of a stage, between sets, or after a set. */
function outside(done: Token[], last: Token): Context['kind'] {
  const bar = done.findIndex((t) => isOp(t, '|'));
  if (bar >= 0) return isOp(last, '|') ? 'stage' : isOp(last, ')') ? 'structural' : 'field';
  return isOp(last, '}') || isOp(last, ')') ? 'structural' : 'set';
}

/** The set around the caret without the condition at the caret. */
function restOf(text: string, done: Token[], caretEnd: number): string {
  const open = done.findLastIndex((t) => isOp(t, '{'));
  const from = open >= 0 ? done[open].end : 0;
  const inside = done.slice(open + 1);
  if (inside.some((t) => isOp(t, '}') || isOp(t, '||') || isOp(t, '('))) return '';
  const and = inside.findLastIndex((t) => isOp(t, '&&'));
  const before = and >= 0 ? text.slice(from, inside[and].begin).trim() : '';
  const after = afterCaret(text, caretEnd);
  if (after === null) return '';
  const parts = [before, after].filter(Boolean);
  return parts.length ? `{ ${parts.join(' && ')} }` : '';
}

/** The conditions after the one at the caret; null if `||` or parentheses follow. */
function afterCaret(text: string, caretEnd: number): string | null {
  const tokens = lex(text.slice(caretEnd));
  const close = tokens.findIndex((t) => isOp(t, '}'));
  const rest = close >= 0 ? tokens.slice(0, close) : tokens;
  if (rest.some((t) => t.kind === 'invalid' || isOp(t, '||') || isOp(t, '(') || isOp(t, ')'))) return null;
  const and = rest.findIndex((t) => isOp(t, '&&'));
  const end = close >= 0 ? tokens[close].begin : text.length - caretEnd;
  return and < 0 ? '' : text.slice(caretEnd + rest[and].end, caretEnd + end).trim();
}

/** The operators that a field supports, most useful first. */
export function operatorsFor(field: string): string[] {
  switch (fieldType(field)) {
    case 'duration': case 'number': return ['>', '>=', '<', '<=', '=', '!='];
    case 'word': return ['=', '!=', '=~', '!~'];
    case 'boolean': return ['=', '!='];
  }
  return ['=', '!=', '=~', '!~', '>', '>=', '<', '<='];
}
