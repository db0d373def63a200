// Formats JSON and SQL for reading, with the kinds of their tokens for colors.

/** A piece of code and what it is. */
export interface Token {
  text: string;
  kind: '' | 'key' | 'string' | 'number' | 'operator';
}

/** Longest text that is formatted; longer ones are shown as they are. */
const maxLength = 100_000;

/** JSON with line breaks, or null if the text is not a JSON object or array. Numbers keep all their digits. */
export function prettyJSON(text: string): Token[] | null {
  if (!/^\s*[[{]/.test(text) || text.length > maxLength) return null;
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const tokens: Token[] = [];
  let depth = 0;
  const parts = text.match(/"(?:[^"\\]|\\.)*"|[^\s"[\]{}:,]+|[[\]{}:,]/g) ?? [];
  const line = (): number => tokens.push({ text: '\n' + '  '.repeat(depth), kind: '' });
  parts.forEach((part, i) => {
    const open = part === '{' || part === '[';
    const close = part === '}' || part === ']';
    if (close && --depth >= 0 && !'[{'.includes(parts[i - 1])) line();
    tokens.push({ text: part === ':' ? ': ' : part, kind: jsonKind(part, parts[i + 1]) });
    if (open && ++depth && !']}'.includes(parts[i + 1])) line();
    if (part === ',') line();
  });
  return tokens;
}

function jsonKind(part: string, next: string | undefined): Token['kind'] {
  if (part[0] === '"') return next === ':' ? 'key' : 'string';
  return '[]{}:,'.includes(part) ? 'operator' : 'number';
}

const sqlStart = /^\s*(?:\/\*.*?\*\/\s*)?(select|insert\s+into|update|delete\s+from|with|merge\s+into|create|alter|drop|call|begin|commit|rollback)\b/is;
/** Words that begin a line. */
const clauses = /^(select|from|where|group|having|order|limit|offset|union|intersect|except|values|set|returning|insert|update|delete|with|join|left|right|inner|outer|full|cross|on|and|or|window)$/i;
const keywords = /^(by|as|in|is|not|null|like|ilike|between|exists|case|when|then|else|end|distinct|into|asc|desc|all|any|using|for|true|false|conflict|do|nothing|lateral|over|partition|create|alter|drop|table|index|begin|commit|rollback|call)$/i;
const indented = /^(and|or|on)$/i;

/** SQL with a line for each clause, or null if the text does not look like SQL. */
export function prettySQL(text: string): Token[] | null {
  if (!sqlStart.test(text) || text.length > maxLength) return null;
  const tokens: Token[] = [];
  let depth = 0;
  let before = '';
  let between = false;
  for (const part of text.trim().match(/\/\*.*?\*\/|--[^\n]*|'(?:[^']|'')*'|"[^"]*"|`[^`]*`|[\p{L}_][\p{L}\d_$.]*|\$?\d[\d.]*|\s+|./gsu) ?? []) {
    if (/^\s+$/.test(part)) {
      if (tokens.length && !/\s$/.test(tokens[tokens.length - 1].text)) tokens.push({ text: ' ', kind: '' });
      continue;
    }
    if (part === '(') depth++;
    if (part === ')') depth--;
    if (/^between$/i.test(part)) between = true;
    else if (between && /^and$/i.test(part)) between = false;
    else if (depth === 0 && clauses.test(part) && startsLine(before, part)) breakLine(tokens, indented.test(part) ? '  ' : '');
    tokens.push({ text: part, kind: sqlKind(part) });
    if (part.startsWith('--')) tokens.push({ text: '\n', kind: '' });
    before = part;
  }
  return tokens;
}

/** Whether a clause begins a line: not the second word of `LEFT JOIN`, `INSERT ... SELECT` excepted. */
function startsLine(before: string, part: string): boolean {
  if (before === '') return false;
  if (/^join$/i.test(part)) return !/^(left|right|inner|outer|full|cross|lateral)$/i.test(before);
  if (/^outer$/i.test(part)) return false;
  return !(/^(update|set|delete)$/i.test(part) && /^(for|do|on|key)$/i.test(before));
}

function breakLine(tokens: Token[], indent: string): void {
  if (tokens[tokens.length - 1]?.text === ' ') tokens.pop();
  if (tokens[tokens.length - 1]?.text !== '\n') tokens.push({ text: '\n', kind: '' });
  if (indent) tokens.push({ text: indent, kind: '' });
}

function sqlKind(part: string): Token['kind'] {
  if (/^['"`]/.test(part)) return part[0] === "'" ? 'string' : '';
  if (/^\$?\d/.test(part)) return 'number';
  if (clauses.test(part) || keywords.test(part)) return 'key';
  return /^([\p{L}_]|--|\/\*)/u.test(part) && !/^(--|\/\*)/.test(part) ? '' : 'operator';
}
