// `make ui-images`: the pictures of README and docs.

import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect } from '../browser/browser.ts';
import { makeScene, openPage, select, settle, type Scene } from './scene.ts';

const folder = process.env.IMAGES!;
const maxBytes = 120_000;
const quality = 82;

let browser: Browser;
let scene: Scene;

beforeAll(async () => {
  [browser, scene] = await Promise.all([connect(), makeScene(folder)]);
}, 180_000);

afterAll(() => Promise.all([browser?.close(), scene?.shop.stop(), scene?.empty.stop()]));

interface Image {
  name: string;
  path: () => string;
  program?: () => Scene['shop'];
  dark?: boolean;
  prepare?: (page: Page) => Promise<void>;
}

const search = (q: string): string => '/search?q=' + encodeURIComponent(q);

const images: Image[] = [
  { name: 'overview', path: () => '/' },
  { name: 'explore', path: () => search('{ service = "checkout" }'), prepare: select },
  { name: 'trace', path: () => `/trace/${scene.slowest}`, prepare: openCharge },
  { name: 'trace-dark', path: () => `/trace/${scene.slowest}`, dark: true },
  { name: 'first-run', path: () => '/', program: () => scene.empty },
  { name: 'open', path: () => '/open', prepare: openFiles },
];

async function openCharge(page: Page): Promise<void> {
  await page.getByRole('row').filter({ hasText: 'POST /v1/charges' }).first().click();
  await page.getByRole('complementary', { name: 'Span details' }).getByText('payment.provider').first().waitFor();
  await page.mouse.move(200, 790);
}

/** Files in the format of Jaeger, from the program itself. */
async function openFiles(page: Page): Promise<void> {
  const files = [];
  for (const service of ['checkout', 'notification']) {
    const answer = await page.request.get(`${await scene.shop.url()}/api/traces?service=${service}&limit=8&start=0&end=4000000000000000`);
    files.push({ name: `${service}.json`, mimeType: 'application/json', buffer: await answer.body() });
  }
  await page.setInputFiles('input[type=file]', files);
  await page.getByRole('grid', { name: 'Traces' }).waitFor();
}

for (const image of images) {
  test(image.name, async () => {
    const page = await openPage(browser, { viewport: { width: 1280, height: 800 }, colorScheme: image.dark ? 'dark' : 'light' });
    await page.goto((await (image.program?.() ?? scene.shop).url()) + image.path());
    await settle(page);
    await image.prepare?.(page);
    await page.waitForTimeout(500);
    const file = join(folder, image.name + '.webp');
    const session = await page.context().newCDPSession(page);
    const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality });
    writeFileSync(file, Buffer.from(data, 'base64'));
    expect(statSync(file).size).toBeLessThan(maxBytes);
    await page.context().close();
  });
}
