import { describe, expect, it } from 'vitest';
import { bestTargets, score, type Target } from './palette-match';

const targets: Target[] = ['Overview', 'Explore', 'checkout', 'cart', 'check-api', 'pre-checkout', 'recheck'].map((label) => ({ kind: 'Page', label, href: '/' + label }));
const labels = (typed: string, limit = 10): string[] => bestTargets(targets, typed, limit).map((t) => t.label);

describe('palette', () => {
  it('orders by kind of match, then by position', () => {
    expect(labels('check')).toEqual(['checkout', 'check-api', 'pre-checkout', 'recheck']);
    expect(labels('checkout')).toEqual(['checkout', 'pre-checkout']);
    expect(labels('EXP')).toEqual(['Explore']);
    expect(labels('ckt')).toEqual(['checkout', 'pre-checkout']);
    expect(labels('zz')).toEqual([]);
  });
  it('shows everything, up to the limit, for an empty text', () => {
    expect(labels(' ', 3)).toEqual(['Overview', 'Explore', 'checkout']);
  });
  it('also looks at the detail, which counts less', () => {
    const list: Target[] = [{ kind: 'Recent trace', label: '8d41f0c2', detail: 'POST /checkout', href: '/1' }, { kind: 'Service', label: 'checkout', href: '/2' }];
    expect(bestTargets(list, 'checkout', 5).map((t) => t.href)).toEqual(['/2', '/1']);
  });
  it('does not match single letters across a text', () => {
    expect(score('Explore', 'r')).toBe(40);
    expect(score('cart', 'x')).toBe(0);
  });
});
