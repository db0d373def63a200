import { authorization, tenant } from './api/client';
import { ErrorBoundary } from './shell/error-boundary';
import { lazy, type LazyComponent } from './shell/lazy';
import { Shell } from './shell/shell';
import { route, type Route } from './shell/url';
import { startEarly } from './trace/early';

/** One chunk for each page. */
const pages: Record<Route['page'], LazyComponent> = {
  overview: lazy(() => import('./pages/overview')),
  explore: lazy(() => import('./pages/explore')),
  trace: lazy(() => import('./pages/trace')),
  open: lazy(() => import('./pages/open')),
  status: lazy(() => import('./pages/status')),
  errors: lazy(() => import('./pages/errors')),
  sampling: lazy(() => import('./pages/sampling')),
  compare: lazy(() => import('./pages/compare')),
  service: lazy(() => import('./pages/service')),
  services: lazy(() => import('./pages/services')),
  map: lazy(() => import('./pages/map')),
  unknown: lazy(() => import('./pages/unknown')),
};

/** Begins to load what the page of the URL needs, before anything is shown. */
export function preload(): void {
  const shown = route.peek();
  pages[shown.page].preload();
  if (shown.page === 'trace') startEarly(shown.id);
}

/** The application: the shell around the page of the URL. A page starts anew with other credentials or another tenant. */
export function App() {
  const { page } = route.value;
  const Page = pages[page];
  return (
    <Shell>
      <ErrorBoundary key={[page, authorization.value, tenant.value].join('\n')}>
        <Page />
      </ErrorBoundary>
    </Shell>
  );
}
