import { describe, expect, it } from 'vitest';
import { linkOf } from './conditions';
import { prettyJSON, prettySQL, type Token } from './pretty';
import { parseStack, repeatsMessage } from './stack';

const text = (tokens: Token[] | null): string | undefined => tokens?.map((t) => t.text).join('');

describe('pretty', () => {
  it('breaks JSON into lines and keeps the digits of numbers', () => {
    expect(text(prettyJSON('{"a":12345678901234567890,"b":[1,{"c":"x, \\"y\\": {"}],"d":[],"e":{}}'))).toBe(
      '{\n  "a": 12345678901234567890,\n  "b": [\n    1,\n    {\n      "c": "x, \\"y\\": {"\n    }\n  ],\n  "d": [],\n  "e": {}\n}');
    expect(prettyJSON('{"a":1}')!.find((t) => t.kind === 'key')!.text).toBe('"a"');
  });

  it.each(['', 'text', '12', '"a"', '{a:1}', '[1,', '[object Object]'])('leaves %j as it is', (s) => {
    expect(prettyJSON(s)).toBeNull();
  });

  it('begins a line for each clause of SQL', () => {
    expect(text(prettySQL("select a, (select max(x) from u where y = 1) from t left join s on s.id = t.id where a between 1 and 2 and b = 'from x' order by a limit 5"))).toBe(
      "select a, (select max(x) from u where y = 1)\nfrom t\nleft join s\n  on s.id = t.id\nwhere a between 1 and 2\n  and b = 'from x'\norder by a\nlimit 5");
    expect(text(prettySQL('INSERT INTO t (a, b) VALUES ($1, $2) RETURNING id'))).toBe('INSERT INTO t (a, b)\nVALUES ($1, $2)\nRETURNING id');
    expect(text(prettySQL('UPDATE t SET a = 1 WHERE id = 2'))).toBe('UPDATE t\nSET a = 1\nWHERE id = 2');
    expect(text(prettySQL('SELECT 1 FOR UPDATE'))).toBe('SELECT 1 FOR UPDATE');
  });

  it.each(['GET /from', 'the select of x', '', 'from a'])('does not take %j for SQL', (s) => {
    expect(prettySQL(s)).toBeNull();
  });

  it('keeps every character of SQL but white space', () => {
    const sql = "SELECT \"a\"::text,'it''s', \u00e9t\u00e9, \ud83d\ude00 -- note\nFROM t /* x */ WHERE a<>$1";
    expect(text(prettySQL(sql))!.replace(/\s/g, '')).toBe(sql.replace(/\s/g, ''));
  });
});

describe('stack', () => {
  it.each([
    ['java', 'java.lang.Error: x\n\tat com.acme.A.b(A.java:1)\n\tat java.base/java.lang.Thread.run(Thread.java:2)\n\t... 3 more', 1, [false, true, false]],
    ['node', 'Error: x\n    at f (/app/a.ts:1:2)\n    at g (/app/node_modules/p/i.js:3:4)', 1, [false, true]],
    ['python', 'Traceback (most recent call last):\n  File "/app/a.py", line 1, in f\n  File "/usr/lib/python3/x.py", line 2, in g', 1, [false, true]],
    ['none', 'something else', 1, []],
  ])('splits %s', (_, trace, head, frames) => {
    const s = parseStack(trace);
    expect(s.head).toHaveLength(head);
    expect(s.frames.map((f) => f.library)).toEqual(frames);
  });

  it('knows when the head only repeats the message', () => {
    expect(repeatsMessage(['Error: boom'], 'Error', 'boom')).toBe(true);
    expect(repeatsMessage([], 'Error', 'boom')).toBe(true);
    expect(repeatsMessage(['Caused by: other'], 'Error', 'boom')).toBe(false);
  });
});

describe('addresses', () => {
  it('follows only web addresses', () => {
    expect(linkOf('https://example.com/a?b=1')).toBe('https://example.com/a?b=1');
    for (const value of ['javascript:alert(1)', 'data:text/html,x', 'ftp://x', 'https://a b', 'see https://a', 'http://[']) expect(linkOf(value)).toBe('');
  });
});
