// A search as Tempo understands it.

import { canonical, quote } from './field';
import { scopes } from './field-table';
import { isComparison, isOp, lex, type Token } from './lex';

/** A search in TraceQL, and its parts that TraceQL does not have. */
export interface TraceQL {
  text: string;
  unknown: string[];
}

const names: Record<string, string> = { service: 'resource.service.name', 'trace.duration': 'trace:duration', 'trace.rootService': 'trace:rootService', 'trace.rootName': 'trace:rootName' };
/** Conditions of one word: how they are written, and how the opposite is. */
const conditions: Record<string, [string, string]> = { error: ['status = error', 'status != error'], root: ['nestedSetParent < 0', 'nestedSetParent >= 0'] };

/** The attributes that a search names. */
export function attributesOf(search: string): string[] {
  return [...new Set(lex(search).filter(isWord).map((t) => canonical(t.text)).filter((name) => scopes.some((s) => name.startsWith(s))))];
}

/** Writes a search in TraceQL, which finds an attribute only by the name that is written. `renamed` has all names of attributes that have several. */
export function traceQL(search: string, renamed: ReadonlyMap<string, string[]> = new Map()): TraceQL {
  const tokens = lex(search);
  const unknown = new Set<string>();
  const namesOf = (t: Token): string[] => renamed.get(nameOf(t)) ?? [nameOf(t)];
  const each = (t: Token, rest: string): string => {
    const all = namesOf(t).map((name) => name + rest);
    return all[1] ? `(${all.join(/^\s*=\s*nil$/.test(rest) ? ' && ' : ' || ')})` : all[0];
  };
  let list = false;
  let text = '';
  let at = 0;
  const write = (from: number, to: number, by: string): void => {
    text += search.slice(at, tokens[from].begin) + by;
    at = tokens[to].end;
  };
  for (let i = 0; i < tokens.length; i++) {
    const [before, word, op] = [tokens[i - 1], tokens[i], tokens[i + 1]];
    if (isOp(op, '(')) list = word.text === 'select' || (word.text === 'by' && !isOp(before, '|')); // | by() takes one field
    else if (isOp(word, ')')) list = false;
    const not = isOp(word, '!') ? 1 : 0;
    const [name, open, field, close] = tokens.slice(i + not);
    if (name?.text === 'exists' && isOp(open, '(') && isOp(close, ')')) {
      write(i, i + not + 3, each(field, not ? ' = nil' : ' != nil'));
      i += not + 3;
    } else if (name && conditions[name.text] && isWord(name) && !isComparison(open) && !isComparison(tokens[i - 1])) {
      write(i, i + not, conditions[name.text][not]);
      i += not;
    } else if (isWord(word) && !isOp(op, '(') && !isComparison(before)) {
      if (['errorGroup', 'text', 'error', 'root'].includes(word.text)) unknown.add(word.text);
      const end = isOp(tokens[i + 2], '-') ? i + 3 : i + 2;
      if (isComparison(op) && isOneOf(before, '{(&&||') && isOneOf(tokens[end + 1], '})&&||')) {
        write(i, end, each(word, search.slice(word.end, tokens[end].end)));
        i = end;
      } else write(i, i, list ? namesOf(word).join(', ') : nameOf(word));
    } else if (word.kind === 'quoted' && !isComparison(before) && !isComparison(op)) {
      unknown.add(quote(word.text));
    }
  }
  return { text: text + search.slice(at), unknown: [...unknown] };
}

function isWord(t: Token): boolean {
  return t.kind === 'word';
}

function isOneOf(t: Token | undefined, operators: string): boolean {
  return t?.kind === 'operator' && operators.includes(t.text);
}

/** The name of a field in TraceQL. */
function nameOf(t: Token): string {
  const name = t.text.startsWith('parent.') ? t.text : canonical(t.text);
  return names[name] ?? name;
}
