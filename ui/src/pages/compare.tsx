import CompareView from '../compare/compare-view';
import type { Places } from '../compare/head';
import { view } from '../shell/url';

const places: Places = { trace: (id) => ({ page: 'trace', id }), pair: (a, b) => ({ page: 'compare', a, b }), typical: true };

/** The page `compare`: two traces of the server. */
export default function ComparePage() {
  const { route } = view.value;
  return route.page === 'compare' ? <CompareView a={route.a} b={route.b} places={places} /> : null;
}
