import type { FilledLink } from './link-templates';
import css from './external-links.module.css';

/** Links to other systems, each in a new tab that learns nothing about this page. */
export function ExternalLinks({ links }: { links: FilledLink[] }) {
  return <>{links.map((l) => <a key={l.name + l.href} class={css.external} href={l.href} target="_blank" rel="noopener noreferrer">{l.name}<span aria-hidden="true"> ↗</span></a>)}</>;
}
