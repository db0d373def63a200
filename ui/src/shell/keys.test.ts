import { describe, expect, it } from 'vitest';
import { keyName, matchesKey } from './keys';

const event = (key: string, o: Partial<KeyboardEvent> = {}) => ({ key, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, ...o });

describe('keys', () => {
  it.each([
    ['?', event('?', { shiftKey: true }), true],
    ['Mod k', event('k', { ctrlKey: true }), true],
    ['Mod k', event('K', { metaKey: true }), true],
    ['Mod k', event('k'), false],
    ['k', event('k', { ctrlKey: true }), false],
    ['k', event('k', { altKey: true }), false],
    ['n', event('N', { shiftKey: true }), false],
    ['ArrowDown', event('ArrowDown'), true],
    ['ArrowDown', event('ArrowDown', { shiftKey: true }), false],
    ['Shift ArrowDown', event('ArrowDown', { shiftKey: true }), true],
    [' ', event(' '), true],
  ])('%s', (key, e, match) => {
    expect(matchesKey(e, key)).toBe(match);
  });

  it('names keys', () => {
    expect([keyName('Mod k', false), keyName('Mod k', true), keyName('ArrowDown', false), keyName('j', false), keyName(' ', false), keyName('Shift ArrowUp', false)])
      .toEqual(['Ctrl K', '⌘ K', '↓', 'j', 'Space', 'Shift ↑']);
  });
});
