import { describe, expect, it } from 'vitest';
import type { ErrorGroup, Errors, Trend } from '../api/errors';
import { nanos } from '../shell/format';
import { countText, secondLine, titleOf, trendText, uncounted } from './trend';

const at = (hour: number, minute: number): string => nanos(new Date(2026, 4, 1, hour, minute).getTime());
const end = new Date(2026, 4, 1, 14).getTime();

function group(type: string, trend: Trend = { kind: 'usual' }): ErrorGroup {
  return { id: '1', service: 's', operation: 'o', operations: [], otherOperations: 0, versions: [], type, pattern: '', frame: '', where: '', message: '', count: 1, first: '1', last: '2', trend, points: [], traceID: '1', spanID: '2' };
}

describe('errors', () => {
  it('says what is new and what grew, by how much, and since when', () => {
    const text = (trend: Trend): string => trendText(group('', trend), end);
    expect(text({ kind: 'usual' })).toBe('');
    expect(text({ kind: 'new', since: at(13, 14) })).toBe('new since 13:14');
    expect(text({ kind: 'new', since: at(13, 14), until: at(13, 54) })).toBe('new, 13:14 to 13:54');
    expect(text({ kind: 'new', since: at(13, 14), until: at(13, 14) })).toBe('new at 13:14');
    expect(text({ kind: 'growing', factor: 8.04, since: at(13, 14) })).toBe('×8 since 13:14');
    expect(text({ kind: 'growing', factor: 3.44, since: at(13, 14), until: at(13, 54) })).toBe('×3.4, 13:14 to 13:54');
    expect(text({ kind: 'growing', factor: 1234, since: at(13, 14) })).toBe('over ×100 since 13:14');
  });
  it('marks estimates and what was not counted', () => {
    const data = (share: number, since?: number): Errors => ({ spans: 1, complete: false, share, since: since ? nanos(since) : undefined, omitted: 0, groups: [] });
    expect([countText(1234, data(1)), countText(1234, data(0.5))]).toEqual(['1,234', '≈ 1,234']);
    expect([uncounted(data(1), 0, 1000), uncounted(data(1, 250), 0, 1000), uncounted(data(0.5), 0, 1000)]).toEqual([0, 0.25, 1]);
  });
  it('shows a message once', () => {
    const of = (type: string, pattern: string, message: string) => {
      const g = { ...group(type), operation: 'Charge', pattern, message };
      return [titleOf(g), secondLine(g)];
    };
    expect(of('', 'failed after <n> attempts', 'failed after 3 attempts')).toEqual(['failed after <n> attempts', 'Charge']);
    expect(of('Timeout', 'no answer within <n> s', 'no answer within 3 s')).toEqual(['Timeout', 'no answer within 3 s']);
    expect(of('Timeout', '', '')).toEqual(['Timeout', 'Charge']);
    expect(of('', '', '')).toEqual(['Charge', 'no message']);
  });
});
