// The browser of a test file.

import { chromium, type Browser, type BrowserContextOptions, type Locator, type Page } from 'playwright-core';

/** Size of a large and a small screen in pixels. */
export const large = { width: 1440, height: 900 };
export const small = { width: 390, height: 844 };

/** Starts Chromium. The caller closes it. */
export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env.CHROMIUM, headless: true, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  });
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

/** Moves the pointer to a position in an element, once it has found its place. Returns the edges of the element. */
export async function pointAt(element: Locator, x: number, y: number): Promise<{ x: number; y: number; width: number; height: number }> {
  await element.hover({ position: { x, y } });
  return (await element.boundingBox())!;
}
