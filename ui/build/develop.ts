// `npm run dev`: Vite serves the sources, and a running program answers the requests of the page.

import type { Plugin, ProxyOptions } from 'vite';

/** Address of the program, with its base path if it has one. */
const program = new URL(process.env.TRACING_URL ?? 'http://localhost:16686');
const basePath = program.pathname.replace(/\/$/, '');

/** The proxy of Vite's server. */
export const proxy: Record<string, ProxyOptions> = {
  '/api': { target: program.origin, rewrite: (path) => basePath + path },
};

const block = /<script type="application\/json" id="boot">.*?<\/script>/;

/** Plugin that copies the boot data from the page of the program. */
export function bootData(): Plugin {
  return {
    name: 'boot-data',
    apply: 'serve',
    async transformIndexHtml(html) {
      const page = await fetch(program, { headers: { accept: 'text/html' } }).then((r) => r.text(), () => '');
      const boot = block.exec(page)?.[0];
      return boot ? html.replace(block, () => boot) : html;
    },
  };
}
