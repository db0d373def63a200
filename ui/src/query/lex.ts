// Tokens of the search language (docs/search-language.md), with their positions.

/** Kind of a token. `invalid` is a character or quoted text that the language does not allow. */
export type TokenKind = 'word' | 'number' | 'quoted' | 'operator' | 'invalid';

/** One token of a search. Positions are indexes in the text. */
export interface Token {
  kind: TokenKind;
  /** Without quotes and escape sequences. */
  text: string;
  begin: number;
  end: number;
}

const operators = ['!>>', '!<<', '&>>', '&<<', '&&', '||', '>>', '<<', '>=', '<=', '!=', '!~', '=~', '==', '!>', '!<', '&>', '&<', '&~',
  '{', '}', '(', ')', ',', '|', '=', '<', '>', '!', '~', '+', '-', '*', '/', '%', '^', '&'];

const comparisons = new Set(['=', '!=', '<', '<=', '>', '>=', '=~', '!~']);

/** Whether a token compares a field with a value. */
export function isComparison(t: Token | undefined): boolean {
  return t?.kind === 'operator' && comparisons.has(t.text);
}

/** Whether a token is the given operator or bracket. */
export function isOp(t: Token | undefined, text: string): boolean {
  return t?.kind === 'operator' && t.text === text;
}

const space = /(?:\s|\/\/.*|\/\*[^]*?\*\/)*/y;
const number = /\.?[0-9](?:[eE][+-](?=[0-9])|[\p{L}\p{Nd}._])*/uy;
const wordPart = /[\p{L}\p{Nd}_\-/:@]+|\./uy;
const scope = /(?:span|resource|event|link|instrumentation|parent)?\./y;
const keyPart = /[^\s{}()=~!<>&|^,"]+/uy;
const wordStart = /[\p{L}_.]/uy;
const quoted = /"(?:[^"\\\n]|\\[^\n])*"|`[^`]*`/y;

function matchAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? '';
}

/** Splits a search into tokens. After an invalid token it goes on, so that the rest keeps its colors. */
export function lex(text: string): Token[] {
  const all: Token[] = [];
  for (let at = matchAt(space, text, 0).length; at < text.length; at += matchAt(space, text, at).length) {
    const t = next(text, at);
    all.push(t);
    at = t.end;
  }
  return all;
}

function next(text: string, at: number): Token {
  const token = (kind: TokenKind, value: string, end: number): Token => ({ kind, text: value, begin: at, end });
  if (text[at] === '"' || text[at] === '`') return quotedAt(text, at);
  const n = matchAt(number, text, at);
  if (n) return token('number', n, at + n.length);
  if (matchAt(wordStart, text, at)) return word(text, at);
  const op = operators.find((o) => text.startsWith(o, at));
  if (op) return token('operator', op, at + op.length);
  const c = String.fromCodePoint(text.codePointAt(at)!);
  return token('invalid', c, at + c.length);
}

/** Reads quoted text. Without a closing quote, the rest of the line is invalid. */
function quotedAt(text: string, begin: number): Token {
  const raw = matchAt(quoted, text, begin);
  if (!raw) {
    const line = text.indexOf('\n', begin);
    const end = text[begin] === '"' && line >= 0 ? line : text.length;
    return { kind: 'invalid', text: text.slice(begin, end), begin, end };
  }
  const value = raw[0] === '`' ? raw.slice(1, -1) : unquote(raw.slice(1, -1));
  return { kind: value === null ? 'invalid' : 'quoted', text: value ?? raw, begin, end: begin + raw.length };
}

/** Reads a name. Parts after a dot may be in double quotes: `span."a b".c`. A key after a scope may contain most characters. */
function word(text: string, begin: number): Token {
  let value = matchAt(scope, text, begin);
  const pattern = value ? keyPart : wordPart;
  let at = begin + value.length;
  for (;;) {
    if (text[at] === '"' && (pattern === keyPart || text[at - 1] === '.')) {
      const part = quotedAt(text, at);
      if (part.kind === 'invalid') return { ...part, begin };
      value += part.text;
      at = part.end;
      continue;
    }
    const part = matchAt(pattern, text, at);
    if (!part) return { kind: 'word', text: value, begin, end: at };
    value += part;
    at += part.length;
  }
}

const escapes: Record<string, string> = { a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v', '\\': '\\', '"': '"' };
const escape = /\\(?:([abfnrtv\\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|[^]?)/g;

/** Interprets the escape sequences of Go in the content of double quotes; null if one is not valid. Bytes above 7f that `\x` and octal sequences write are not decoded as UTF-8. */
export function unquote(s: string): string | null {
  let valid = true;
  const text = s.replace(escape, (all, simple?: string, x?: string, u?: string, U?: string, octal?: string) => {
    if (simple) return escapes[simple];
    const code = octal ? parseInt(octal, 8) : parseInt(x ?? u ?? U ?? '', 16);
    valid &&= code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
    return valid ? String.fromCodePoint(code) : all;
  });
  return valid ? text : null;
}
