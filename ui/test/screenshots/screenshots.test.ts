// `make ui-screenshots`: pictures of every page, light and dark, on a large and a small screen.

import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { large, connect, small } from '../browser/browser.ts';
import type { Program } from '../browser/program.ts';
import { makeScene, openPage, select, settle, type Scene } from './scene.ts';

const folder = process.env.SCREENSHOTS!;

let browser: Browser;
let scene: Scene;

beforeAll(async () => {
  [browser, scene] = await Promise.all([connect(), makeScene(folder)]);
}, 180_000);

afterAll(() => Promise.all([browser?.close(), scene?.shop.stop(), scene?.empty.stop()]));

interface Shot {
  name: string;
  path: () => string;
  program?: () => Program;
  /** Brings the page into the state of the picture. */
  prepare?: (page: Page) => Promise<void>;
}

const shots: Shot[] = [
  { name: 'first-run', path: () => '/', program: () => scene.empty },
  { name: 'overview', path: () => '/' },
  { name: 'explore', path: () => '/search' },
  { name: 'explore-query', path: () => '/search?q=' + encodeURIComponent('{ service = "checkout" && duration > 1s }') },
  { name: 'explore-completion', path: () => '/search', prepare: (page) => page.getByRole('combobox').first().fill('{ service = ') },
  { name: 'explore-facets', path: () => '/search', prepare: openFacets },
  { name: 'explore-selection', path: () => '/search', prepare: select },
  { name: 'explain', path: () => '/search?tab=explain&sel=errors' },
  { name: 'explore-error', path: () => '/search?q=' + encodeURIComponent('{ nam = "x" }') },
  { name: 'explore-none', path: () => '/search?q=' + encodeURIComponent('{ service = "unknown" }') },
  { name: 'groups', path: () => '/search?tab=groups&by=service,name' },
  ...['spans', 'times', 'tree', 'errors'].map((tab) => ({ name: `explore-${tab}`, path: () => `/search?tab=${tab}` })),
  { name: 'errors', path: () => '/errors', prepare: (page) => page.getByRole('button', { name: 'UpstreamTimeout' }).click() },
  { name: 'services', path: () => '/services' },
  { name: 'service', path: () => '/services/payment' },
  ...['errors', 'instances'].map((tab) => ({ name: `service-${tab}`, path: () => `/services/payment?tab=${tab}` })),
  { name: 'trace', path: () => `/trace/${scene.slowest}` },
  { name: 'trace-details', path: () => `/trace/${scene.slowest}`, prepare: (page) => page.getByRole('row').filter({ hasText: 'POST /v1/charges' }).first().click() },
  ...['flame', 'table', 'statistics', 'events', 'graph'].map((tab) => ({ name: `trace-${tab}`, path: () => `/trace/${scene.slowest}?tab=${tab}` })),
  { name: 'trace-missing', path: () => '/trace/00000000000000000000000000000001' },
  { name: 'open', path: () => '/open' },
  { name: 'status', path: () => '/status' },
  { name: 'sampling', path: () => '/sampling?service=payment' },
  { name: 'compare', path: () => `/trace/${scene.slowest}...baseline` },
  ...['timelines', 'attributes'].map((tab) => ({ name: `compare-${tab}`, path: () => `/trace/${scene.slowest}...baseline?tab=${tab}` })),
  { name: 'compare-same', path: () => `/trace/${scene.slowest}...${scene.slowest}` },
  { name: 'dependencies', path: () => '/dependencies' },
  { name: 'unknown', path: () => '/nothing/here' },
  { name: 'palette', path: () => '/', prepare: (page) => page.keyboard.press('Control+k') },
  { name: 'keys', path: () => '/', prepare: (page) => page.keyboard.press('?') },
];

/** On a small screen, facets are a sheet. */
async function openFacets(page: Page): Promise<void> {
  const button = page.getByRole('button', { name: 'Facets', exact: true });
  if (await button.isVisible()) await button.click();
}

for (const shot of shots) {
  test(shot.name, async () => {
    const url = await (shot.program?.() ?? scene.shop).url();
    for (const colorScheme of ['light', 'dark'] as const) {
      for (const viewport of [large, small]) {
        const page = await openPage(browser, { colorScheme, viewport });
        await page.goto(url + shot.path());
        await page.locator('main').waitFor();
        await settle(page);
        await shot.prepare?.(page);
        await page.waitForTimeout(300);
        const file = join(folder, `${shot.name}-${colorScheme}-${viewport.width}.png`);
        expect((await page.screenshot({ path: file })).length).toBeGreaterThan(1000);
        await page.context().close();
      }
    }
  });
}
