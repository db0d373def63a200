import { describe, expect, it } from 'vitest';
import { contextAt, operatorsFor } from './complete';

/** Context at the mark `|` of a text. */
function at(marked: string) {
  const caret = marked.indexOf('¦');
  const text = marked.replace('¦', '');
  const c = contextAt(text, caret);
  return { ...c, replaced: text.slice(c.begin, c.end) };
}

describe('completion', () => {
  it.each([
    ['¦', 'field', '', ''],
    ['dur¦', 'field', 'dur', ''],
    ['{ ¦ }', 'field', '', ''],
    ['{ span.pa¦yment = 1 }', 'field', 'span.pa', ''],
    ['{ service ¦', 'operator', '', 'service'],
    ['{ service =¦', 'value', '', 'service'],
    ['{ service = "che¦ }', 'value', 'che', 'service'],
    ['{ service = "che¦ckout" }', 'value', 'che', 'service'],
    ['{ kind = ser¦ }', 'value', 'ser', 'kind'],
    ['{ service = "a" ¦ }', 'logical', '', ''],
    ['{ exists(.a¦) }', 'field', '.a', ''],
    ['{ exists(.a) ¦ }', 'logical', '', ''],
    ['{ a.b = 1 && ¦ }', 'field', '', ''],
    ['{ error } ¦', 'structural', '', ''],
    ['{ error } >> ¦', 'set', '', ''],
    ['{ error } | ¦', 'stage', '', ''],
    ['{ error } | ra¦', 'stage', 'ra', ''],
    ['{ error } | max_over_time(dur¦', 'field', 'dur', ''],
    ['{ error } | select(.a, .b¦)', 'field', '.b', ''],
    ['({ error }) ¦', 'structural', '', ''],
  ])('%s', (text, kind, prefix, field) => {
    expect(at(text)).toMatchObject({ kind, prefix, field });
  });

  it('replaces the whole token', () => {
    expect(at('{ service = "che¦ckout" && error }').replaced).toBe('"checkout"');
    expect(at('{ service = "che¦ && error }').replaced).toBe('"che');
    expect(at('{ span.pa¦yment = 1 }').replaced).toBe('span.payment');
    expect(at('{ a.b = ¦ }').replaced).toBe('');
  });

  it('knows the whole condition of a value', () => {
    expect(at('{ error && span.n != "5¦" }')).toMatchObject({ field: 'span.n', fieldBegin: 11, op: '!=' });
  });

  it('knows the conditions that limit what can match', () => {
    expect(at('{ service = "a" && span.pa¦ }').rest).toBe('{ service = "a" }');
    expect(at('{ service = ¦ && error && .x }').rest).toBe('{ error && .x }');
    expect(at('{ error && name = "x¦" && .y }').rest).toBe('{ error && .y }');
    expect(at('{ error || na¦ }').rest).toBe('');
    expect(at('{ na¦ || error }').rest).toBe('');
    expect(at('{ error } >> { .a && na¦ }').rest).toBe('{ .a }');
    expect(at('na¦').rest).toBe('');
  });

  it('offers operators by type', () => {
    expect(operatorsFor('duration')).not.toContain('=~');
    expect(operatorsFor('childCount')).not.toContain('=~');
    expect(operatorsFor('root')).toEqual(['=', '!=']);
    expect(operatorsFor('http.route')).toContain('=~');
  });
});
