import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { link, startRouter } from './url';

/** The frame of every page: top bar, and the page as main region. */
export function Shell({ children }: { children: ComponentChildren }) {
  useEffect(startRouter, []);
  return (
    <>
      <header>
        <nav aria-label="Pages">
          <a href={link({ page: 'overview' })}>Overview</a> <a href={link({ page: 'explore' })}>Explore</a> <a href={link({ page: 'open' })}>Open</a>
        </nav>
      </header>
      <main id="main">{children}</main>
    </>
  );
}
