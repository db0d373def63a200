// The browser of a test file.

import { join } from 'node:path';
import { chromium, type Browser, type BrowserContextOptions, type Locator, type Page } from 'playwright-core';
import { inject } from 'vitest';

/** Size of a large and a small screen in pixels. */
export const large = { width: 1440, height: 900 };
export const small = { width: 390, height: 844 };

/** Connects to the Chromium of all files, which setup.ts has started. The caller closes the connection. */
export function connect(): Promise<Browser> {
  return chromium.connect(inject('browser'));
}

/** A page, and what went wrong in it. */
export interface TestPage {
  page: Page;
  /** Uncaught errors, errors on the console, and violations of the Content-Security-Policy. */
  problems: string[];
}

/** Opens an empty page in a fresh context. SLOWDOWN is the factor by which the page is slower, as on a loaded machine. */
export async function newPage(browser: Browser, options: BrowserContextOptions = {}): Promise<TestPage> {
  const context = await browser.newContext({ viewport: large, ...options });
  context.setDefaultTimeout(60_000); // a loaded machine
  const page = await context.newPage();
  if (process.env.SLOWDOWN) {
    const session = await context.newCDPSession(page);
    await session.send('Emulation.setCPUThrottlingRate', { rate: Number(process.env.SLOWDOWN) });
  }
  const problems: string[] = [];
  page.on('pageerror', (e) => problems.push(`uncaught: ${e.message}`));
  page.on('console', (m) => {
    if (m.type() === 'error') problems.push(`console: ${m.text()} (${m.location().url})`);
  });
  return { page, problems };
}

/** Chooses a value from the list of a button that is named by its label. */
export async function choose(scope: Page | Locator, label: string, option: string): Promise<void> {
  await scope.getByRole('button', { name: new RegExp(`^${label}:`) }).click();
  await scope.getByRole('menuitemradio', { name: option, exact: true }).click();
}

/** Saves the download that an action starts in a folder, and returns the path. */
export async function download(page: Page, folder: string, action: () => Promise<void>): Promise<string> {
  const [file] = await Promise.all([page.waitForEvent('download'), action()]);
  const path = join(folder, file.suggestedFilename());
  await file.saveAs(path);
  return path;
}

/** Moves the pointer to a position in an element, once it has found its place. Returns the edges of the element. */
export async function pointAt(element: Locator, x: number, y: number): Promise<{ x: number; y: number; width: number; height: number }> {
  await element.hover({ position: { x, y } });
  return (await element.boundingBox())!;
}
