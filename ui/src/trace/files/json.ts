// Splits a text into JSON documents: one, one for each line, or one after another.

import { t } from '../../shell/text';
import { mistakeAt } from './mistake';
import { FileError } from './span';

/** A JSON document of a text, and the line at which it begins. */
export interface Document {
  value: unknown;
  line: number;
}

/** Reads the JSON documents of a text. Throws a FileError with line and column of the first mistake, after the documents before it. */
export function* documents(text: string): Generator<Document> {
  const whole = parse(text);
  if (whole !== undefined) {
    yield { value: whole, line: 1 };
    return;
  }
  const lines = new Lines(text);
  for (let at = skip(text, 0); at < text.length; ) {
    const end = endOf(text, at);
    const value = end < 0 ? undefined : parse(text.slice(at, end));
    if (value === undefined) throw new FileError(mistake(text, at, end, lines));
    yield { value, line: lines.at(at) };
    at = skip(text, end);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Documents can be separated by white space, commas or record separators. */
function skip(text: string, at: number): number {
  while (at < text.length && ' \n\r\t,\x1e\ufeff'.includes(text[at])) at++;
  return at;
}

/** Position after the object or list at a position, -1 if it does not end. Other characters are a document of one line. */
function endOf(text: string, at: number): number {
  if (text[at] !== '{' && text[at] !== '[') {
    const end = text.indexOf('\n', at);
    return end < 0 ? text.length : end;
  }
  let depth = 0;
  for (let i = at; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 34) {
      i = endOfString(text, i);
      if (i < 0) return -1;
    } else if (c === 123 || c === 91) depth++;
    else if ((c === 125 || c === 93) && --depth === 0) return i + 1;
  }
  return -1;
}

/** Position of the quote that ends the string at a position, or -1. */
function endOfString(text: string, at: number): number {
  for (;;) {
    at = text.indexOf('"', at + 1);
    if (at < 0) return -1;
    let slashes = 0;
    while (text[at - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return at;
  }
}

/** Describes the first mistake in a document; `end` is -1 if it does not end. */
function mistake(text: string, at: number, end: number, lines: Lines): string {
  const place = at + mistakeAt(text.slice(at, end < 0 ? text.length : end));
  const cut = end < 0 && (text[place] === '"' ? endOfString(text, place) < 0 : /^[\w.+-]*\s*$/.test(text.slice(place, place + 1000)));
  if (cut) return t('{at}: the JSON document that begins here has no end. The file may be cut off.', { at: lines.place(at) });
  const found = /^\S{0,20}/.exec(text.slice(place, place + 20))![0];
  return t('{place}: this is not JSON, “{found}” is not allowed here.', { place: lines.place(place), found });
}

/** Line numbers of ascending positions. */
class Lines {
  private line = 1;
  private from = 0;

  constructor(private readonly text: string) {}

  /** Line of a position, which must not be before that of the last call. */
  at(position: number): number {
    for (let i = this.text.indexOf('\n', this.from); i >= 0 && i < position; i = this.text.indexOf('\n', i + 1)) {
      this.line++;
      this.from = i + 1;
    }
    return this.line;
  }

  /** `Line 3, column 14`. */
  place(position: number): string {
    const line = this.at(position);
    return t('Line {line}, column {from}', { line, from: position - this.from + 1 });
  }
}
