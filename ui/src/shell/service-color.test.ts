import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { addServices, colorSteps, distinctSteps, learnServices, serviceColor, showServices, type Steps } from './service-color';

const demo = ['accounts', 'cart', 'catalog', 'checkout', 'email', 'frontend', 'fraud', 'gateway', 'inventory', 'ledger', 'notification', 'payment', 'recommendation', 'search', 'shipping', 'warehouse'];
const none: Steps = new Map();
const distinct = (steps: Steps, names: string[]): number => new Set(names.map((n) => steps.get(n))).size;

describe('colors of services', () => {
  it('are distinct as long as there are enough, whatever the order of the names', () => {
    const steps = addServices(none, demo);
    expect(distinct(steps, demo)).toBe(demo.length);
    expect(addServices(none, [...demo].reverse())).toEqual(steps);
    const many = Array.from({ length: 3 * colorSteps }, (_, i) => `service-${i}`);
    const uses = many.map((n) => addServices(none, many).get(n)!).reduce((counts, s) => counts.set(s, (counts.get(s) ?? 0) + 1), new Map<number, number>());
    expect([...uses.values()]).toEqual(new Array(colorSteps).fill(3));
  });

  it('stay when services appear or vanish', () => {
    const steps = addServices(none, demo);
    const more = addServices(steps, ['a-new-one', ...demo.slice(3)]);
    expect(demo.map((n) => more.get(n))).toEqual(demo.map((n) => steps.get(n)));
    expect(distinct(more, ['a-new-one', ...demo])).toBe(demo.length + 1);
  });

  it('differ within a view of a large installation, and most are those of the other pages', () => {
    const many = Array.from({ length: 300 }, (_, i) => `team-${i % 7}-service-${i}`);
    const known = addServices(none, many);
    const view = many.filter((_, i) => i % 18 === 0);
    const steps = distinctSteps(known, view);
    expect(distinct(steps, view)).toBe(view.length);
    const moved = view.filter((n) => steps.get(n) !== known.get(n));
    expect(moved.length).toBeLessThanOrEqual(view.length - distinct(known, view));
    expect(steps.get(many[1])).toBe(known.get(many[1]));
    // A service that is only inferred takes a color that no other has.
    const inferred = distinctSteps(addServices(none, demo), ['redis', ...demo.slice(0, 4)]).get('redis');
    expect([...addServices(none, demo).values()]).not.toContain(inferred);
  });

  it('are those of the list of the server, on every page', () => {
    learnServices(demo);
    const before = demo.map(serviceColor);
    showServices(demo.slice(2, 7));
    expect(demo.map(serviceColor)).toEqual(before);
    learnServices([...demo, 'newcomer']);
    expect(demo.map(serviceColor)).toEqual(before);
    const inferred = ['redis', 'postgres', 'kafka'].map(serviceColor);
    expect(new Set([...before, serviceColor('newcomer'), ...inferred]).size).toBe(demo.length + 4);
    const hide = showServices(['kafka', 'cart']);
    learnServices([...demo, 'newcomer', 'another']);
    expect(['redis', 'postgres', 'kafka'].map(serviceColor).filter((c, i) => c !== inferred[i] && c === serviceColor('another'))).toEqual([]);
    expect(new Set([...demo, 'newcomer', 'another', 'redis', 'postgres', 'kafka'].map(serviceColor)).size).toBe(demo.length + 5);
    hide();
  });

  it('are those of before when a page with more services than colors is left', () => {
    const many = Array.from({ length: 3 * colorSteps }, (_, i) => `many-${i}`);
    learnServices(many);
    const before = many.map(serviceColor);
    const hide = showServices(many.slice(10, 10 + colorSteps));
    expect(many.map(serviceColor)).not.toEqual(before);
    hide();
    expect(many.map(serviceColor)).toEqual(before);
  });
});

type Vector = [number, number, number];

/** Colors of the tokens, as linear RGB. */
const tokens = readFileSync(new URL('./tokens.css', import.meta.url), 'utf8');
function token(name: string, theme: 'light' | 'dark'): Vector {
  const [, light, dark] = new RegExp(`--${name}: light-dark\\((#\\w{6}), (#\\w{6})\\)`).exec(tokens)!;
  const hex = theme === 'light' ? light : dark;
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)) as Vector;
}

const times = (m: number[][], v: Vector): Vector => m.map((row) => row.reduce((sum, x, i) => sum + x * v[i], 0)) as Vector;

/** How people see a color: all cones, or without one kind of them (Machado, Oliveira and Fernandes 2009). */
const sights: Record<string, number[][]> = {
  all: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

function oklab(rgb: Vector): Vector {
  const lms = times([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]], rgb);
  return times([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]], lms.map((c) => Math.cbrt(Math.max(0, c))) as Vector);
}

const distance = (a: Vector, b: Vector, sight: string): number => {
  const [x, y] = [a, b].map((c) => oklab(times(sights[sight], c).map((v) => Math.min(1, Math.max(0, v))) as Vector));
  return 100 * Math.hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
};

const luminance = (c: Vector): number => 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
const contrast = (a: Vector, b: Vector): number => (Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05);

describe.each(['light', 'dark'] as const)('the palette of services, %s', (theme) => {
  const colors = Array.from({ length: colorSteps }, (_, i) => token(`svc-${i + 1}`, theme));

  it('stands out from the surfaces', () => {
    for (const [i, c] of colors.entries()) for (const surface of ['bg', 'bg-chrome']) expect(contrast(c, token(surface, theme)), `step ${i + 1} on ${surface}`).toBeGreaterThanOrEqual(3);
  });

  // OKLab x 100; what can just be seen is about 2.
  it.each([['all', 8], ['protanopia', 5], ['deuteranopia', 5], ['tritanopia', 5]])('has colors that differ in pairs with %s', (sight, least) => {
    for (let i = 0; i < colors.length; i++) for (let k = 0; k < i; k++) expect(distance(colors[i], colors[k], sight), `steps ${k + 1} and ${i + 1}`).toBeGreaterThanOrEqual(least);
  });

  it('leaves red to errors', () => {
    for (const [i, c] of colors.entries()) for (const red of ['error', 'error-solid']) expect(distance(c, token(red, theme), 'all'), `step ${i + 1} and ${red}`).toBeGreaterThanOrEqual(12);
  });
});
