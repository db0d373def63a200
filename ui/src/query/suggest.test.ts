import { expect, it } from 'vitest';
import { contextAt } from './complete';
import { localSuggestions } from './suggest';

const first = (text: string): string[] | undefined => localSuggestions(contextAt(text, text.length))?.list.map((s) => s.text);

it('lists words that begin with the text before those that contain it', () => {
  expect(first('{ status = o')).toEqual(['ok', 'error']);
  expect(first('{ kind = i')?.[0]).toBe('internal');
  expect(first('{ error } | q')).toEqual(['quantile_over_time(']);
  expect(first('{ error } | r')?.[0]).toBe('rate()');
  expect(first('{ duration > 0')?.slice(0, 2)).toEqual(['10ms', '100ms']);
});
