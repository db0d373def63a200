import { defineConfig } from 'vitest/config';

// The address of a running all-in-one, for `npm run dev`.
const server = process.env.TRACING_URL ?? 'http://localhost:16686';

export default defineConfig({
  base: './', // relative: the page may be served below any path
  build: {
    outDir: process.env.UI_OUT ?? 'dist',
    emptyOutDir: true,
    assetsDir: 'assets',
    assetsInlineLimit: 0, // the Content-Security-Policy forbids data URLs
    modulePreload: { polyfill: false },
    target: 'es2022',
  },
  worker: { format: 'es' },
  css: { modules: { generateScopedName: '[name]-[local]-[hash:base64:4]' } },
  server: { proxy: { '/api': server } },
  test: { include: ['src/**/*.test.ts'] },
});
