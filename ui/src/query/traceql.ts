// A search as Tempo understands it.

import { canonical, quote } from './field';
import { isComparison, isOp, lex, type Token } from './lex';

/** A search in TraceQL, and its parts that TraceQL does not have. */
export interface TraceQL {
  text: string;
  unknown: string[];
}

const names: Record<string, string> = { service: 'resource.service.name', 'trace.duration': 'trace:duration', 'trace.rootService': 'trace:rootService', 'trace.rootName': 'trace:rootName' };
/** Conditions of one word: how they are written, and how the opposite is. */
const conditions: Record<string, [string, string]> = { error: ['status = error', 'status != error'], root: ['nestedSetParent < 0', 'nestedSetParent >= 0'] };

/** Writes a search in TraceQL. */
export function traceQL(search: string): TraceQL {
  const tokens = lex(search);
  const unknown = new Set<string>();
  let text = '';
  let at = 0;
  const write = (from: number, to: number, by: string): void => {
    text += search.slice(at, tokens[from].begin) + by;
    at = tokens[to].end;
  };
  for (let i = 0; i < tokens.length; i++) {
    const [before, word, op] = [tokens[i - 1], tokens[i], tokens[i + 1]];
    const not = isOp(word, '!') ? 1 : 0;
    const [name, open, field, close] = tokens.slice(i + not);
    if (name?.text === 'exists' && isOp(open, '(') && isOp(close, ')')) {
      write(i, i + not + 3, `${nameOf(field)} ${not ? '=' : '!='} nil`);
      i += not + 3;
    } else if (name && conditions[name.text] && isWord(name) && !isComparison(open) && !isComparison(tokens[i - 1])) {
      write(i, i + not, conditions[name.text][not]);
      i += not;
    } else if (isWord(word) && !isOp(op, '(') && !isComparison(before)) {
      if (['errorGroup', 'text', 'error', 'root'].includes(word.text)) unknown.add(word.text);
      write(i, i, nameOf(word));
    } else if (word.kind === 'quoted' && !isComparison(before) && !isComparison(op)) {
      unknown.add(quote(word.text));
    }
  }
  return { text: text + search.slice(at), unknown: [...unknown] };
}

function isWord(t: Token): boolean {
  return t.kind === 'word';
}

/** The name of a field in TraceQL. */
function nameOf(t: Token): string {
  const name = t.text.startsWith('parent.') ? t.text : canonical(t.text);
  return names[name] ?? name;
}
