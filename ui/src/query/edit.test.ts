import { describe, expect, it } from 'vitest';
import { addCondition, addText, callsInstead, conditionsOn, patternOf, removeCondition, replaceCondition, setBounds, setCondition, spansBeside, spansLike, spansOf, spansWith, spansWithout, searchOf, withoutErrors, withSelect, type PatternSpan } from './edit';
import { parseQuery } from './parse';
import { maxHistory, readHistory, remember } from './history';
import { problemIn } from './problem';
import { withSet } from './sets';
import table from './testdata/searches.json';

describe('edit', () => {
  it.each(table.adds)('adds $field $op $value to $text', ({ text, field, op, value, result }) => {
    expect(addCondition(text, field, op, value)).toBe(result);
    expect(addCondition(result, field, op, value)).toBe(result); // once is enough
  });

  it('keeps a text that is not a search', () => {
    expect(addCondition('{ a', 'name', '=', 'x')).toBe('{ a');
  });

  it('adds a stage to a search with stages', () => {
    expect(addCondition('{ error } | count() > 2', 'name', '=', 'x')).toBe('{ error } | count() > 2 | { name = "x" }');
    expect(addText('{ error } | count() > 2', 'name = "x"')).toBe('{ error } | count() > 2 | { name = "x" }');
    expect(withSet('{ error } | count() > 2', '{ a }')).toBe('({ error } | count() > 2) && { a }');
    expect(withSet('{ a', '{ b }')).toBe('{ b }');
  });

  it('removes conditions', () => {
    const text = '{ service = "a" &&  error && name = "b" } | select(.c)';
    expect(removeCondition(text, conditionsOn(text, 'service')[0])).toBe('{ error && name = "b" } | select(.c)');
    expect(removeCondition(text, conditionsOn(text, 'error')[0])).toBe('{ service = "a" && name = "b" } | select(.c)');
    expect(removeCondition(text, conditionsOn(text, 'name')[0])).toBe('{ service = "a" &&  error } | select(.c)');
    expect(removeCondition('{ error }', conditionsOn('{ error }', 'error')[0])).toBe('');
    expect(removeCondition('{ error } | select(.c)', conditionsOn('{ error }', 'error')[0])).toBe('{} | select(.c)');
  });

  it('removes what only failed spans meet', () => {
    expect(withoutErrors('{ service = "a" && status = error }')).toBe('{ service = "a" }');
    expect(withoutErrors('{ error && name = "b" && status = error }')).toBe('{ name = "b" }');
    expect(withoutErrors('{ error }')).toBe('');
    expect(withoutErrors('{ !error && status != error }')).toBe('{ !error && status != error }');
    expect(withoutErrors('{ service = "a" } >> { error }')).toBe('{ service = "a" } >> { error }');
  });

  it('searches for calls instead of spans of services', () => {
    expect(callsInstead('{ service = "a" } >> { service = "r" && error }')).toBe('{ service = "a" } >> { (peer.service = "r" || db.system.name = "r" || messaging.system = "r") && error }');
    expect(callsInstead('{ error }')).toBe('{ error }');
  });

  it('replaces and sets conditions', () => {
    expect(replaceCondition('{ .a = "1" && error }', conditionsOn('{ .a = "1" }', '.a')[0], '.a', '!=', 'x')).toBe('{ .a != "x" && error }');
    expect(setCondition('{ service = "a" && error && service.name = "b" }', 'service', '=', 'c')).toBe('{ service = "c" && error }');
    expect(setCondition('{ service = "a" && error }', 'service', '=', '')).toBe('{ error }');
    expect(setCondition('', 'service', '=', 'x')).toBe('{ service = "x" }');
  });

  it('sets bounds', () => {
    expect(setBounds('{ duration > 1s && error }', 'duration', '2s', '3s')).toBe('{ error && duration >= 2s && duration <= 3s }');
    expect(setBounds('{ duration > 1s && duration < 9s }', 'duration', '', '')).toBe('');
    expect(setBounds('{ duration > 1s }', 'trace.duration', '1ms', '')).toBe('{ duration > 1s && trace.duration >= 1ms }');
  });

  it('selects fields', () => {
    expect(withSelect('', ['span.a b'])).toBe('{} | select(span."a b")');
    expect(withSelect('{ error } | select(http.a)', ['.http.a', 'name'])).toBe('{ error } | select(.http.a, name)');
    expect(parseQuery(withSelect('{ error }', ['.x', '."y"']))!.select).toHaveLength(2);
  });

  it('adds missing braces', () => {
    expect([' duration > 1s ', 'error', '!root', '.paid', '"a" && error', '{ error', '', '(error', 'name = x y'].map(searchOf))
      .toEqual(['{ duration > 1s }', '{ error }', '{ !root }', '{ .paid }', '{ "a" && error }', '{ error', '', '(error', 'name = x y']);
  });

  it('searches for plain text', () => {
    expect(['u-1247', 'checkout cart', 'api.example.com/v1', ' 10.0.0.7 ', 'it\'s 50 €'].map(searchOf))
      .toEqual(['{ "u-1247" }', '{ "checkout cart" }', '{ "api.example.com/v1" }', '{ "10.0.0.7" }', '{ "it\'s 50 €" }']);
    const text = '{ "u-1247" && !"b" && error }';
    expect(conditionsOn(text, 'text').map((c) => [c.op, c.value])).toEqual([['contains', 'u-1247'], ['!contains', 'b']]);
    expect(replaceCondition(text, conditionsOn(text, 'text')[0], 'text', '!contains', 'a"b')).toBe('{ !"a\\"b" && !"b" && error }');
  });
});

describe('searches by example', () => {
  const span = { service: 'a "b"', name: 'GET /', status: 'error' };

  it('selects what a list shows', () => {
    expect(spansWith({ field: 'span.http.route', value: '/x' })).toBe('{ span.http.route = "/x" }');
    expect(spansWith({ field: 'resource.user id', value: 'u1' })).toBe('{ resource."user id" = "u1" }');
    expect(spansWithout({ field: 'event:name', value: 'retry' }, span)).toBe('{ service = "a \\"b\\"" && name = "GET /" && !(event:name = "retry") }');
    expect(spansOf(span)).toBe('{ service = "a \\"b\\"" && name = "GET /" }');
    expect(spansBeside(span)).toBe('{ service = "a \\"b\\"" && !(name = "GET /") }');
    expect(spansLike(span, [{ field: 'span.tier', value: 'plus' }])).toBe('{ service = "a \\"b\\"" && name = "GET /" && error && span.tier = "plus" }');
    expect(spansLike({ ...span, status: 'ok' })).not.toContain('error');
    for (const q of [spansWith({ field: 'span.a b"c', value: 'x\ny' }), spansWithout({ field: 'link.k', value: '"' }, span)]) expect(parseQuery(q)).not.toBeNull();
  });

  it('describes chosen spans by their relation', () => {
    const of = (name: string, above: number, rest: Partial<PatternSpan> = {}): PatternSpan => ({ service: 's', name, error: false, duration: 520e6, above, child: false, ...rest });
    const a = '{ service = "s" && name = "a" }';
    expect(patternOf([of('a', -1), of('b', 0)])).toBe(`${a} >> { service = "s" && name = "b" && duration > 500ms }`);
    expect(patternOf([of('a', -1), of('b', 0, { child: true, error: true, duration: 500e6 })])).toBe(`${a} > { service = "s" && name = "b" && error && duration > 450ms }`);
    expect(patternOf([of('a', -1), of('b', 0), of('c', 1, { duration: 0 })])).toBe(`${a} >> { service = "s" && name = "b" } >> { service = "s" && name = "c" }`);
    expect(patternOf([of('a', -1), of('b', 0), of('c', 0)])).toBe(`${a} >> { service = "s" && name = "b" && duration > 500ms } && ${a} >> { service = "s" && name = "c" && duration > 500ms }`);
    expect(patternOf([of('b', -1, { duration: 1 }), of('c', -1, { duration: 9_999_999_999 })])).toBe('{ service = "s" && name = "b" && duration > 0ns } && { service = "s" && name = "c" && duration > 9s }');
  });
});

describe('history', () => {
  it('keeps the newest searches once', () => {
    const data = new Map<string, string>();
    const storage = { getItem: (k: string) => data.get(k) ?? null, setItem: (k: string, v: string) => void data.set(k, v) };
    for (let i = 0; i < 60; i++) remember('{ .n = ' + i + ' }', storage);
    remember('{ .n = 30 }', storage);
    const list = readHistory(storage);
    expect(list).toHaveLength(maxHistory);
    expect(list.slice(0, 2)).toEqual(['{ .n = 30 }', '{ .n = 59 }']);
    expect(new Set(list).size).toBe(maxHistory);
    expect(readHistory({ getItem: () => '{"a":1}' })).toEqual([]);
    expect(readHistory({ getItem: () => { throw new Error('forbidden'); } })).toEqual([]);
  });
});

describe('problem', () => {
  it('finds the token of an error', () => {
    const text = '{ name = "😀" && spam:foo = 1 }';
    const p = problemIn(`unable to parse param 'q': column 17: unknown scope "spam"\n  ...\n  ^^^`, text)!;
    expect(text.slice(p.begin, p.end)).toBe('spam:foo');
    expect(p.message).toBe('unknown scope "spam"');
    expect(problemIn('line 2, column 3: expected a field', '{ error &&\n  ) }')).toEqual({ message: 'expected a field', begin: 13, end: 14 });
    expect(problemIn('column 3: expected a condition', '{ ')).toEqual({ message: 'expected a condition', begin: 2, end: 2 });
    expect(problemIn('the server is busy', text)).toBeNull();
  });
});
