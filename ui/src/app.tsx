import type { ComponentType } from 'preact';
import { lazy, Suspense } from './shell/lazy';
import { view, type Route } from './shell/url';
import { Shell } from './shell/shell';

/** One chunk for each page. */
const pages: Record<Route['page'], ComponentType> = {
  overview: lazy(() => import('./pages/overview')),
  explore: lazy(() => import('./pages/explore')),
  trace: lazy(() => import('./pages/trace')),
  open: lazy(() => import('./pages/open')),
  status: lazy(() => import('./pages/status')),
  compare: lazy(() => import('./pages/later')),
  service: lazy(() => import('./pages/later')),
  services: lazy(() => import('./pages/later')),
  map: lazy(() => import('./pages/later')),
  unknown: lazy(() => import('./pages/unknown')),
};

/** The application: the shell around the page of the URL. */
export function App() {
  const { page } = view.value.route;
  const Page = pages[page];
  return (
    <Shell>
      <Suspense key={page}>
        <Page />
      </Suspense>
    </Shell>
  );
}
