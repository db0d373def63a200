import { computed, effect, signal, type Signal } from '@preact/signals';
import type { Zone } from './format';
import { view } from './url';

/** A choice that outlives the page, in the local storage of the browser where it is allowed. */
function stored<T extends string>(key: string, values: readonly T[], initial: T): Signal<T> {
  let value = initial;
  try {
    const text = localStorage.getItem(key) as T | null;
    if (text && values.includes(text)) value = text;
  } catch {
    // Without storage, the choice lasts as long as the page.
  }
  const s = signal(value);
  effect(() => {
    try {
      if (s.value === initial) localStorage.removeItem(key);
      else localStorage.setItem(key, s.value);
    } catch {
      // As above.
    }
  });
  return s;
}

/** Choice of the user: the theme of the system, or one of the two. */
export type ThemeChoice = 'system' | 'light' | 'dark';

/** Stored choice of theme. */
export const themeChoice = stored<ThemeChoice>('tracing.theme', ['system', 'light', 'dark'], 'system');

/** Stored choice of time zone. */
export const zoneChoice = stored<Zone>('tracing.zone', ['utc', 'local'], 'utc');

/** How much space rows have. */
export type Density = 'compact' | 'roomy';

/** Stored choice of the height of rows. */
export const density = stored<Density>('tracing.density', ['compact', 'roomy'], 'compact');

/** Heights of rows in pixels, as in tokens.css: of a trace, and of tables. */
export const rowHeights = computed(() => (density.value === 'roomy' ? { trace: 32, table: 36 } : { trace: 24, table: 28 }));

/** Theme of this page: the URL wins over the choice. */
export const theme = computed<ThemeChoice>(() => view.value.theme || themeChoice.value);

/** Time zone of this page: the URL wins over the choice. */
export const zone = computed<Zone>(() => view.value.zone || zoneChoice.value);

/** Keeps `<html data-theme>` and `data-density` up to date. Returns a function that stops it. */
export function applyTheme(): () => void {
  return effect(() => {
    const { dataset } = document.documentElement;
    if (theme.value === 'system') delete dataset.theme;
    else dataset.theme = theme.value;
    if (density.value === 'compact') delete dataset.density;
    else dataset.density = density.value;
  });
}
