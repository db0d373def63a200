import { describe, expect, it } from 'vitest';
import type { Ingest } from '../api/types';
import { nanos } from '../shell/format';
import { arrivalFact, ageFact, formFact, isNear, nearQuery } from './trace-missing-facts';

const id = '4bf92f3577b34da6a3ce929d0e0e4736';
const now = Date.UTC(2026, 10, 28, 12);
const hour = 3_600_000;

const ingest = (change: Partial<Ingest> = {}): Ingest => ({
  receives: true, now: nanos(now), since: nanos(now - hour), received: 1200, refused: 0, refusedRequests: 0, dropped: 0, receivers: [], oldest: nanos(now - hour), oldestStart: nanos(now - 2 * hour), newestStart: nanos(now), storedBytes: 0, maxBytes: 0, retention: 72 * hour * 1e6, ...change,
});

describe('a missing trace', () => {
  it('may have an id with a mistake', () => {
    expect(formFact(id)).toBeNull();
    expect(formFact(id.slice(0, 16))?.mark).toBe('partial');
    expect(formFact(id.slice(0, 31))?.text).toContain('31');
    expect(formFact('4')?.text).toContain('1 digit,');
    expect(formFact('4bf92f35-xyz')?.text).toContain('“-”, “x”, “y”, “z”');
    expect(formFact('0'.repeat(32))?.mark).toBe('error');
  });

  it('may have an id that is near another one', () => {
    const changed = id.replace('77b3', '77c3');
    for (const near of [changed, id.slice(0, -1), id + '0', id.replace('4bf9', '4fb9'), id.slice(0, 16), id.slice(16), id.slice(0, 9)]) expect(isNear(near, id), near).toBe(true);
    expect(isNear('0'.repeat(16) + 'a3ce929d0e0e4737', 'a3ce929d0e0e4736')).toBe(true);
    for (const far of [id, 'f' + id.slice(1, -1) + '0', id.slice(0, 6), '0'.repeat(32)]) expect(isNear(far, id), far).toBe(false);
  });

  it('is searched for by the half without the mistake', () => {
    const found = (typed: string, stored: string): boolean => new RegExp(`^(?:${/"(.*)"/.exec(nearQuery(typed))?.[1]})$`).test(stored);
    for (const typed of [id.replace('77b3', '77c3'), id.slice(0, -1), id + '0', id.replace('4bf9', '4fb9'), id.slice(0, 16), id.slice(16), id.slice(0, 9)]) {
      expect(found(typed, id), typed).toBe(true);
    }
    expect(found(id.slice(16, 30).toUpperCase(), '0'.repeat(16) + id.slice(16))).toBe(true);
    expect(found('f' + id.slice(1, -1) + '0', id)).toBe(false);
    expect(found('0'.repeat(16) + id.slice(16), '0'.repeat(16) + id.slice(0, 16))).toBe(false);
    expect([nearQuery(id.slice(0, 7)), nearQuery('4bf92f35-77b34da6')]).toEqual(['', '']);
  });

  it('may have been refused or dropped, or nothing has arrived', () => {
    expect(arrivalFact(ingest()).text).toMatch(/1,200. None was refused or dropped/);
    expect(arrivalFact(ingest({ refused: 3 })).text).toMatch(/3 refused/);
    expect(arrivalFact(ingest({ received: 0 })).mark).toBe('warn');
    expect(arrivalFact(ingest({ receives: false })).mark).toBe('partial');
  });

  it('may be older than what is stored', () => {
    expect(ageFact(ingest(), now).text).toMatch(/oldest stored span started.*3.*d/);
    expect(ageFact(ingest({ oldestStart: '' }), now).text).toMatch(/Spans are kept for/);
    expect(ageFact(ingest({ oldestStart: '', retention: 0 }), now).text).toMatch(/not known/);
  });
});
