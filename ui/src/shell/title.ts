import { computed, effect, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { t } from './text';
import { view, type Route } from './url';

/** Title of the page, without the name of the program. */
export const title = signal('');

const defaults: Record<Route['page'], string> = {
  overview: t('Overview'), explore: t('Explore'), trace: t('Trace'), compare: t('Compare'), service: t('Service'), services: t('Services'),
  map: t('Map'), open: t('Open'), status: t('Status'), sampling: t('Sampling'), errors: t('Errors'), unknown: t('Unknown page'),
};

/** Sets the title of the document: the most specific part first, "checkout, POST /pay". */
export function useTitle(text: string): void {
  useEffect(() => { title.value = text; }, [text]);
}

/** Keeps the title of the document up to date; a page without `useTitle` has a default. Returns a function that stops it. */
export function applyTitle(): () => void {
  const page = computed(() => view.value.route.page);
  const stopDefault = effect(() => { title.value = defaults[page.value]; });
  const stopTitle = effect(() => { document.title = title.value ? `${title.value} · tracing` : 'tracing'; });
  return () => {
    stopDefault();
    stopTitle();
  };
}
