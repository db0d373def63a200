import { describe, expect, it } from 'vitest';
import { instantText, parseInstant, parseRange, parseSpan, rangeName, shiftRange, shortRangeName } from './time-input';

const now = Date.UTC(2026, 10, 22, 14, 42, 10);

describe('time picker', () => {
  it.each([['45m', '45m'], ['90 min', '90m'], ['2 Days', '2d'], ['now-3h', '3h'], ['last 2 hours', '2h'], ['1w', '1w'], ['0h', null], ['h', null], ['1.5h', null], ['5 months', null], ['', null]])('span %j', (text, span) => {
    expect(parseSpan(text)).toBe(span);
  });

  it.each([
    ['14:06', '2026-11-22T14:06:00.000Z'], ['9:30:15', '2026-11-22T09:30:15.000Z'], ['2026-11-20', '2026-11-20T00:00:00.000Z'], ['2026-11-20 14:06', '2026-11-20T14:06:00.000Z'],
    ['2026-11-20T14:06:07.25', '2026-11-20T14:06:07.250Z'], ['2026-11-20T14:06:00+02:00', '2026-11-20T12:06:00.000Z'], ['2026-11-20 14:06:00Z', '2026-11-20T14:06:00.000Z'],
    ['now', '2026-11-22T14:42:10.000Z'], ['now-2h', '2026-11-22T12:42:10.000Z'], ['1714557600', '2024-05-01T10:00:00.000Z'], ['1714557600123', '2024-05-01T10:00:00.123Z'],
    ['1714557600123456', '2024-05-01T10:00:00.123Z'], ['1714557600123456789', '2024-05-01T10:00:00.123Z'],
  ])('instant %j', (text, iso) => {
    expect(new Date(parseInstant(text, 'utc', now)!).toISOString()).toBe(iso);
  });

  it.each(['', 'x', '25:00', '12:60', '2026-13-01', '2026-11-20 1', 'now-1y', '14:06 pm'])('rejects %j', (text) => {
    expect(parseInstant(text, 'utc', now)).toBeNull();
  });

  it('reads ranges and names the wrong field', () => {
    expect(parseRange('14:06', '14:42', 'utc', now)).toEqual({ range: { from: '2026-11-22T14:06:00.000Z', to: '2026-11-22T14:42:00.000Z' } });
    expect(parseRange('14:06', '', 'utc', now)).toEqual({ range: { from: '2026-11-22T14:06:00.000Z', to: 'now' } });
    expect(parseRange('now-2h', 'now-1h', 'utc', now)).toEqual({ range: { from: 'now-2h', to: 'now-1h' } });
    expect(parseRange('x', 'now', 'utc', now)).toMatchObject({ field: 'from' });
    expect(parseRange('14:06', 'x', 'utc', now)).toMatchObject({ field: 'to' });
    expect(parseRange('14:06', '14:06', 'utc', now)).toMatchObject({ field: 'to' });
  });

  it('names ranges', () => {
    const r = (from: string, to: string) => rangeName({ from, to }, 'utc', now);
    expect(r('now-1h', 'now')).toBe('Last 1 hour');
    expect(r('now-15m', 'now')).toBe('Last 15 minutes');
    expect(r('2026-11-22T14:06:00.000Z', '2026-11-22T14:42:30.000Z')).toBe('14:06 to 14:42:30');
    expect(r('2026-11-22T14:06:00.000Z', 'now')).toBe('14:06 to now');
    expect(r('2026-11-20T14:06:00.000Z', '2026-11-20T15:00:00.000Z')).toBe('2026-11-20 14:06 to 15:00');
    expect(r('2026-11-20T14:06:00.000Z', '2026-11-21T15:00:00.000Z')).toBe('2026-11-20 14:06 to 2026-11-21 15:00');
    expect(r('nonsense', 'now')).toBe('Last 1 hour');
    expect(shortRangeName({ from: 'now-15m', to: 'now' }, 'utc', now)).toBe('15 min');
    expect(instantText('2026-11-20T14:06:00.000Z', 'utc', now)).toBe('2026-11-20 14:06');
  });

  it('moves and doubles ranges', () => {
    const hour = { from: '2026-11-22T12:00:00.000Z', to: '2026-11-22T13:00:00.000Z' };
    expect(shiftRange(hour, -1, now)).toEqual({ from: '2026-11-22T11:00:00.000Z', to: '2026-11-22T12:00:00.000Z' });
    expect(shiftRange(hour, 1, now)).toEqual({ from: '2026-11-22T13:00:00.000Z', to: '2026-11-22T14:00:00.000Z' });
    expect(shiftRange({ from: 'now-30m', to: 'now' }, 1, now)).toEqual({ from: '2026-11-22T14:12:10.000Z', to: '2026-11-22T14:42:10.000Z' });
    expect(shiftRange(hour, 0, now)).toEqual({ from: '2026-11-22T11:30:00.000Z', to: '2026-11-22T13:30:00.000Z' });
    expect(shiftRange({ from: 'now-30m', to: 'now' }, 0, now)).toEqual({ from: 'now-60m', to: 'now' });
  });
});
