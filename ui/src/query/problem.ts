// Where the server found an error in a search.

import { lex } from './lex';

/** An error at a place of a search. Positions are indexes in the text. */
export interface Problem {
  message: string;
  begin: number;
  end: number;
}

const pattern = /(?:line (\d+), )?col(?:umn)? (\d+): ([^\n]*)/;

/** Reads the position in a message of the server, in which columns are characters counted from 1. Null if the message names no position. */
export function problemIn(message: string, text: string): Problem | null {
  const m = pattern.exec(message);
  if (!m) return null;
  const lines = text.split('\n');
  const line = Number(m[1] ?? 1) - 1;
  const before = lines.slice(0, line).reduce((n, l) => n + l.length + 1, 0);
  const begin = before + [...(lines[line] ?? '')].slice(0, Number(m[2]) - 1).join('').length;
  const token = lex(text).find((t) => t.begin <= begin && begin < t.end);
  return { message: m[3], begin, end: Math.max(token?.end ?? 0, Math.min(begin + 1, text.length)) };
}
