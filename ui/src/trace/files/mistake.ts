// Finds the first mistake in a JSON document, because only some browsers say where it is.

const token = /[ \n\r\t]*(?:([{}[\]:,])|"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;

/** What can follow: a value, the first value or the end of a list, a key, ... */
type Expected = 'value' | 'first value' | 'key' | 'first key' | 'colon' | 'next';

/** Position of the first mistake in a document that JSON.parse rejects. */
export function mistakeAt(text: string): number {
  const open: string[] = [];
  let expected: Expected = 'value';
  for (let at = 0; ; ) {
    token.lastIndex = at;
    const match = token.exec(text);
    const begin = at + /^[ \n\r\t]*/.exec(text.slice(at, at + 1000))![0].length;
    if (!match) return begin;
    const next = follow(expected, match[1] ?? (text[begin] === '"' ? '"' : '0'), open);
    if (!next || (open.length === 0 && next === 'next')) return next ? token.lastIndex : begin;
    expected = next;
    at = token.lastIndex;
  }
}

/** What can follow a token (`"` is a string, `0` another plain value), or null if the token is a mistake. */
function follow(expected: Expected, token: string, open: string[]): Expected | null {
  if (expected === 'colon') return token === ':' ? 'value' : null;
  if (expected === 'next') {
    if (token === ',') return open[open.length - 1] === '{' ? 'key' : 'value';
    return close(token, open);
  }
  if (token === ']' && expected === 'first value') return close(token, open);
  if (token === '}' && expected === 'first key') return close(token, open);
  if (expected === 'key' || expected === 'first key') return token === '"' ? 'colon' : null;
  if (token === '{' || token === '[') {
    open.push(token);
    return token === '{' ? 'first key' : 'first value';
  }
  return token === '"' || token === '0' ? 'next' : null;
}

function close(token: string, open: string[]): Expected | null {
  const begin = { '}': '{', ']': '[' }[token];
  return begin && open.pop() === begin ? 'next' : null;
}
