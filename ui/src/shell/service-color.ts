// Colors of services. A name prefers a color by its hash; services that the server knows get distinct ones.

import { computed, effect, signal } from '@preact/signals';
import { get } from '../api/client';
import type { Names } from '../api/types';
import { config } from './config';

/** Number of color steps for services, `--svc-1` to `--svc-23`: a prime number, so that every stride reaches all of them. */
export const colorSteps = 23;

/** Maximum number of names whose steps are kept in the browser. */
const maxKept = 500;

/** Color steps by name of the service. */
export type Steps = ReadonlyMap<string, number>;

/** Folded FNV-1a. */
function hash(name: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) {
    h ^= name.charCodeAt(i);
    h = Math.imul(h, 0x01000193);
  }
  return (h ^ (h >>> 15)) >>> 0; // the low bits alone differ little between short names
}

/** Counts the names that have each step. */
function usesOf(steps: Iterable<number>): number[] {
  const uses = new Array<number>(colorSteps).fill(0);
  for (const s of steps) uses[s]++;
  return uses;
}

/** The step with the fewest uses. Where several have, the name chooses: it prefers the steps in an order of its own. */
function choose(name: string, uses: readonly number[]): number {
  const h = hash(name);
  const stride = 1 + ((h >>> 8) % (colorSteps - 1));
  let best = h % colorSteps;
  for (let i = 1, step = best; i < colorSteps; i++) {
    step = (step + stride) % colorSteps;
    if (uses[step] < uses[best]) best = step;
  }
  return best;
}

/** Gives steps to names. Names with a step keep it; each other name takes one of the least used. Equal lists give equal steps. */
export function addServices(known: Steps, names: readonly string[]): Steps {
  const all = new Map(known);
  const uses = usesOf(known.values());
  for (const name of [...new Set(names)].sort()) {
    if (all.has(name)) continue;
    const step = choose(name, uses);
    uses[step]++;
    all.set(name, step);
  }
  return all;
}

/** Steps of services that are shown together: their known ones, as far as these are distinct. Only the others of a step take another one, first of those that no known service has. */
export function distinctSteps(known: Steps, shown: readonly string[]): Steps {
  const all = new Map(known);
  const uses = usesOf(known.values());
  const taken = new Set<number>();
  const rest: string[] = [];
  for (const name of [...new Set(shown)].sort()) {
    const step = known.get(name);
    if (step === undefined || taken.has(step)) rest.push(name);
    else taken.add(step);
  }
  for (const s of taken) uses[s] += known.size + shown.length;
  for (const name of rest) {
    const step = choose(name, uses);
    uses[step] += known.size + shown.length;
    all.set(name, step);
  }
  return all;
}

const key = 'tracing.services';

function stored(): Steps {
  try {
    const entries = Object.entries(JSON.parse(localStorage.getItem(key) ?? '{}') as Record<string, unknown>);
    return new Map(entries.filter((e): e is [string, number] => Number.isInteger(e[1]) && (e[1] as number) >= 0 && (e[1] as number) < colorSteps).slice(0, maxKept));
  } catch {
    return new Map();
  }
}

/** Services that the server knows, in this browser's memory: the color of a service stays when others appear. */
const known = signal<Steps>(stored());

/** Other names that pages have shown, for example inferred services. They stay, too, unless a service of the server needs the step and another one is free. */
let guests: Steps = new Map();

/** Services that the page shows together. */
const shown = signal<readonly string[]>([]);

/** Steps of services. A new object means that colors have changed. */
export const serviceSteps = computed(() => distinctSteps(new Map([...guests, ...known.value]), shown.value));

function keep(): void {
  try {
    localStorage.setItem(key, JSON.stringify(Object.fromEntries([...known.peek(), ...guests].slice(0, maxKept))));
  } catch {
    // Without storage, the steps last as long as the page.
  }
}

/** Gives steps to names that the server has not named. */
function welcome(names: readonly string[]): void {
  if (names.every((n) => known.peek().has(n) || guests.has(n))) return;
  guests = new Map([...addServices(new Map([...known.peek(), ...guests]), names)].filter(([n]) => !known.peek().has(n)));
  if (known.peek().size > 0) keep(); // before, colors are only preliminary
}

/** Takes the names of all services from the server. */
export function learnServices(names: readonly string[]): void {
  const before = known.peek().size > 0 ? new Map([...guests, ...known.peek()]) : new Map<string, number>();
  const listed = new Set(names);
  const next = addServices(new Map([...before].filter(([name]) => listed.has(name))), names);
  const taken = new Set(next.values());
  guests = new Map([...before].filter(([name, step]) => !listed.has(name) && (next.size >= colorSteps || !taken.has(step))));
  if (next.size === known.peek().size && [...next].every(([name, step]) => known.peek().get(name) === step)) return;
  known.value = next;
  keep();
}

/** Services that the page shows together get distinct colors, as far as there are enough, until the returned function is called. */
export function showServices(names: readonly string[]): () => void {
  welcome(names);
  if (names.length !== shown.peek().length || names.some((n, i) => n !== shown.peek()[i])) shown.value = names;
  const own = shown.peek();
  return () => { if (shown.peek() === own) shown.value = []; };
}

/** CSS color of a service. Many services share colors: always show the name, too. */
export function serviceColor(name: string): string {
  const step = serviceSteps.value.get(name);
  if (step === undefined) welcome([name]);
  return `var(--svc-${(step ?? guests.get(name) ?? 0) + 1})`;
}

/** Number of services that are asked for, as the jump box does. */
const listed = 200;

/** Asks for the names of all services, again after a change of credentials or tenant. Returns a function that stops it. */
export function loadServices(): () => void {
  return effect(() => {
    if (!config.value) return undefined;
    const abort = new AbortController();
    get<Names>('values', { key: 'service', prefix: '', limit: listed }, { signal: abort.signal }).then((a) => learnServices(a.data.names), () => undefined); // without them, names choose
    return () => abort.abort();
  });
}
