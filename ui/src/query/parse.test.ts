import { describe, expect, it } from 'vitest';
import { canonical, durationText, fieldLabel, formatCondition, formatField, quote, round3 } from './field';
import { lex, unquote } from './lex';
import { conditionsOf } from './edit';
import { parseQuery } from './parse';
import table from './testdata/searches.json';

describe('lex', () => {
  it('returns tokens with positions', () => {
    expect(lex('{ span."a b".c >=  1.5e+3 && x =~ `y"` }').map((t) => [t.kind, t.text, t.begin, t.end])).toEqual([
      ['operator', '{', 0, 1], ['word', 'span.a b.c', 2, 14], ['operator', '>=', 15, 17], ['number', '1.5e+3', 19, 25], ['operator', '&&', 26, 28],
      ['word', 'x', 29, 30], ['operator', '=~', 31, 33], ['quoted', 'y"', 34, 38], ['operator', '}', 39, 40],
    ]);
  });

  it('goes on after an invalid token', () => {
    expect(lex("a ' \"b").map((t) => [t.kind, t.begin, t.end])).toEqual([['word', 0, 1], ['invalid', 2, 3], ['invalid', 4, 6]]);
    expect(lex('"a\\qb" c').map((t) => t.kind)).toEqual(['invalid', 'word']);
  });

  it('reads the escape sequences of Go', () => {
    expect(unquote('\\a\\n\\"\\\\\\x41\\u00fc\\U0001F600\\101')).toBe('\x07\n"\\Aü😀A');
    for (const bad of ['\\q', '\\u12', '\\ud800', '\\', '\\U00110000']) expect(unquote(bad)).toBeNull();
  });

  it.each(['', 'a b', '"\\\n\t\u0000\u2028ü😀', '`'])('reads what quote writes: %j', (text) => {
    expect(lex(quote(text))).toEqual([{ kind: 'quoted', text, begin: 0, end: quote(text).length }]);
  });
});

describe('parse', () => {
  it.each(table.searches)('agrees with the server: $text', ({ text, valid }) => {
    expect(parseQuery(text) !== null).toBe(valid);
  });

  it('finds conditions and their positions', () => {
    const text = '{ service.name = "a" && !(.b = 1) && 1s < duration && exists(.c) && !error && (x.a || x.b) && .d = nil && (.n = "-1" || .n = -1) && !(.n = "true" || .n = true) && (.n = "1" || .n = 2) } | select(.e, name)';
    const q = parseQuery(text)!;
    expect(conditionsOf(q)!.map((c) => [text.slice(c.begin, c.end), c.name, c.op, c.value])).toEqual([
      ['service.name = "a"', 'service.name', '=', 'a'], ['!(.b = 1)', '.b', 'not', '1'], ['1s < duration', 'duration', '>', '1s'],
      ['exists(.c)', '.c', 'exists', ''], ['!error', 'error', '=', 'false'], ['(x.a || x.b)', '', '', ''], ['.d = nil', '.d', '!exists', ''],
      ['(.n = "-1" || .n = -1)', '.n', '=', '-1'], ['!(.n = "true" || .n = true)', '.n', 'not', 'true'], ['(.n = "1" || .n = 2)', '', '', ''],
    ]);
    expect(q.select).toEqual(['.e', 'name']);
  });

  it.each(['{ a.b || c.d }', '{} >> {}', '({})'])('has no list of conditions for %s', (text) => {
    expect(conditionsOf(parseQuery(text)!)).toBeNull();
  });
});

describe('fields', () => {
  it('knows the names of a field', () => {
    expect(['service.name', 'resource.service.name', 'http.route', '.http.route', 'rootName', 'span.name'].map(canonical))
      .toEqual(['service', 'service', '.http.route', '.http.route', 'trace.rootName', 'span.name']);
  });

  it('quotes what needs quotes', () => {
    expect(['span."a b"', '."http.x"', '."x"."y".z', 'span."a""'].map(canonical)).toEqual(['span."a b"', '.http.x', '.x.y.z', 'span."\\"a\\"\\""']);
    expect(fieldLabel('."user id"') + fieldLabel('span."a".b') + fieldLabel('name')).toBe('user idspan.a.bname');
    expect([formatField('span.a b'), formatField('.x"y'), formatField('http.route'), formatField('service'), formatField('odd key.z'), formatField('span."a b"')])
      .toEqual(['span."a b"', '."x\\"y"', 'http.route', 'service', '."odd key.z"', 'span."a b"']);
    expect(formatCondition('.http.status', '>=', '500')).toBe('.http.status >= 500');
    expect(formatCondition('.http.status', '=', '500')).toBe('(.http.status = "500" || .http.status = 500)');
    expect(formatCondition('.n', 'not', '-0.5') + formatCondition('.n', '!=', '1e-07')).toBe('!(.n = "-0.5" || .n = -0.5)(.n != "1e-07" || .n != 1e-07)');
    expect(['true', '9223372036854775807', '1e+21'].map((v) => formatCondition('.n', '=', v)))
      .toEqual(['(.n = "true" || .n = true)', '(.n = "9223372036854775807" || .n = 9223372036854775807)', '(.n = "1e+21" || .n = 1e+21)']);
    for (const v of ['9223372036854775808', '100000000000000000000', '007', '+5', '-0', '0.50', '1e3', '1e-7', '1e400', 'Infinity', 'NaN', 'x', '']) expect(formatCondition('.n', '=', v)).toBe(`.n = "${v}"`);
    expect(formatCondition('childCount', '=', '3')).toBe('childCount = 3');
    expect(formatCondition('kind', '=', 'server')).toBe('kind = server');
    expect(formatCondition('error', '=', 'true') + formatCondition('error', 'not', 'true')).toBe('error!error');
  });

  it('rounds bounds outwards', () => {
    expect([round3(25_874_004, Math.floor), round3(696_235_435, Math.ceil), round3(123.4, Math.floor)].map(durationText)).toEqual(['25.8ms', '697ms', '123ns']);
  });

  it('writes exact durations', () => {
    expect([1, 1500, 250_000, 1_500_000, 61e9, 0.4].map(durationText)).toEqual(['1ns', '1.5us', '250us', '1.5ms', '61s', '0ns']);
  });
});
