import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, large, newPage, small } from './browser.ts';
import { Program } from './program.ts';
import { sendSpans, spanID, traceID } from './spans.ts';

let program: Program;
let browser: Browser;
let url: string;

let short: Program; // with short answers

const settings = (...tail: string[]): string[] => ['quiet=100ms', ...tail].map((s) => `extensions::query::tail::${s}`);

beforeAll(async () => {
  [program, short, browser] = await Promise.all([Program.start(undefined, settings('max_clients=1')), Program.start(undefined, settings('max_duration=1s')), connect()]);
  url = await program.url();
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
  await short?.stop();
});

/** Sends a trace of two spans. */
async function send(name: string, service = 'web', to = program): Promise<void> {
  const [id, root, start] = [traceID(), spanID(), Date.now() - 200];
  await sendSpans(to, [
    { traceID: id, spanID: root, service, name, kind: 'server', start, duration: 100 },
    { traceID: id, spanID: spanID(), parentID: root, service: 'cart', name: 'get', start, duration: 50 },
  ]);
}

const names = (page: Page): Promise<string[]> => page.getByRole('grid').locator('tbody a').allTextContents();
const state = (page: Page, text: string | RegExp) => page.getByRole('region', { name: 'Live traces' }).getByText(text);

async function visit(path: string, use: (page: Page) => Promise<void>, from = url): Promise<void> {
  const { page, problems } = await newPage(browser);
  await page.goto(from + path);
  await use(page);
  // Refused requests are logged by the browser.
  expect(problems.filter((p) => !/status of (400|429)/.test(p))).toEqual([]);
  await page.context().close();
}

test('lists traces as they arrive, and waits while paused or looked at', () => visit('/search', async (page) => {
  await page.getByRole('button', { name: 'Live' }).click();
  await state(page, 'Live, showing all').waitFor();
  await expect.poll(() => new URL(page.url()).searchParams.get('live')).toBe('1');
  await page.getByText('Waiting for the first trace that matches.').waitFor();
  await send('one');
  await page.getByRole('link', { name: 'one web' }).waitFor();
  await send('two');
  await expect.poll(() => names(page)).toEqual(['two web', 'one web']);
  await page.getByText('2 traces in the last 5 min').waitFor();

  await page.locator('body').press('Space');
  await state(page, 'Paused, showing all').waitFor();
  await send('three');
  await page.getByRole('button', { name: 'Show 1 new trace' }).waitFor();
  await expect.poll(() => names(page)).toEqual(['two web', 'one web']);
  await page.locator('body').press('Space');
  await expect.poll(() => names(page)).toEqual(['three web', 'two web', 'one web']);

  await page.getByRole('grid').hover();
  await page.getByText('The list is paused while you look at it.').waitFor();
  await send('four');
  await page.getByRole('button', { name: 'Show 1 new trace' }).waitFor();
  await page.mouse.move(10, 10);
  await expect.poll(() => names(page)).toEqual(['four web', 'three web', 'two web', 'one web']);

  // A row with the focus stays where it is, and opens.
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await send('five');
  await page.getByRole('button', { name: 'Show 1 new trace' }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/trace\//);
  await page.getByRole('treegrid').getByText('three').first().waitFor();
}));

test('waits while there are too many viewers', async () => {
  const first = await newPage(browser);
  await first.page.goto(url + '/search?live=1');
  await state(first.page, 'Live, showing all').waitFor();
  await visit('/search?live=1', async (page) => {
    await page.getByRole('alert').getByText(/tail\.max_clients/).waitFor();
    await page.getByText(/next attempt in/).waitFor();
    await first.page.context().close();
    await state(page, 'Live, showing all').waitFor();
  });
});

// The server ends each answer after max_duration. A trace that is not quiet by then can be missed.
test('connects again after each answer', async () => visit('/search?live=1', async (page) => {
  await page.waitForRequest(/v1\/tail/);
  await page.waitForRequest(/v1\/tail/);
  await expect.poll(async () => {
    await send('later', 'web', short);
    return page.getByRole('link', { name: 'later web' }).count();
  }, { interval: 300 }).toBeGreaterThan(0);
}, await short.url()));

test('follows a search, and says what it cannot follow', () => visit('/search?live=1&q=' + encodeURIComponent('{ service = "web" } >> { error }'), async (page) => {
  await page.getByRole('alert').getByText(/search must select single spans/).waitFor();
  await page.getByRole('combobox', { name: 'Search', exact: true }).fill('{ service = "api" }');
  await page.keyboard.press('Control+Enter');
  await page.keyboard.press('Enter');
  await state(page, 'Live, showing all').waitFor();
  await send('other');
  await send('mine', 'api');
  await page.getByRole('link', { name: 'mine api' }).waitFor();
  await expect.poll(() => names(page)).toEqual(['mine api']);
  await page.getByRole('button', { name: 'Stop live' }).click();
  await expect.poll(() => names(page)).toEqual(['mine api']);
  await expect.poll(() => new URL(page.url()).searchParams.has('live')).toBe(false);
}));

test('the heatmap slides, unless motion is to be reduced', async () => {
  for (const reducedMotion of ['no-preference', 'reduce'] as const) {
    const { page } = await newPage(browser, { reducedMotion });
    await page.goto(url + '/search?live=1');
    const moving = () => page.evaluate(() => document.getAnimations().filter((a) => a.playState === 'running' && !(a instanceof CSSAnimation) && !(a instanceof CSSTransition)).length);
    const first = await page.getByRole('application').getAttribute('aria-label');
    expect(first).toContain('Durations of traces');
    if (reducedMotion === 'reduce') {
      await state(page, 'Live, showing all').waitFor();
      await page.waitForTimeout(2200); // more than one step
      expect(await moving()).toBe(0);
    } else {
      await expect.poll(moving).toBe(1);
      await page.getByRole('application').hover();
      await expect.poll(moving).toBe(0);
    }
    await page.context().close();
  }
});

test('a page in the background disconnects, and continues', async () => {
  const { page } = await newPage(browser);
  await page.clock.install();
  await page.goto(url + '/search?live=1');
  await state(page, 'Live, showing all').waitFor();
  const hide = (hidden: boolean) => page.evaluate((h) => {
    Object.defineProperty(document, 'hidden', { value: h, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);
  await hide(true);
  await page.clock.fastForward(61_000);
  await state(page, 'Paused in the background').waitFor();
  await hide(false);
  await state(page, 'Live, showing all').waitFor();
  await send('after the rest');
  await page.getByRole('link', { name: 'after the rest web' }).waitFor();
  await page.context().close();
});

test.each([['large', large], ['small', small]])('a scrolled list stays where it is (%s screen)', async (_name, viewport) => {
  const { page } = await newPage(browser, { viewport });
  await page.goto(url + '/search?live=1');
  await state(page, 'Live, showing all').waitFor();
  for (let i = 0; i < 24; i++) await send(`row ${i}`);
  await expect.poll(() => names(page).then((n) => n.length)).toBe(24);
  const third = page.getByRole('grid').locator('tbody tr').nth(20);
  await third.scrollIntoViewIfNeeded();
  await page.getByText('The list is paused while you look at it.').waitFor();
  const before = await third.boundingBox();
  await send('new');
  const show = page.getByRole('button', { name: 'Show 1 new trace' });
  await show.waitFor();
  expect(await third.boundingBox()).toEqual(before);
  await show.click();
  await expect.poll(() => names(page).then((n) => n[0])).toBe('new web');
  await page.context().close();
});
