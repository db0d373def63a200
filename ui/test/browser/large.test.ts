// A trace of 100,000 spans: it opens, and everything in it can be reached.

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { largeTrace, marker } from '../bench/large-trace.ts';
import { connect, newPage } from './browser.ts';
import { Program } from './program.ts';
import { sendSpans, traceID, type TestSpan } from './spans.ts';

const size = 100_000;
const id = traceID();
let program: Program;
let browser: Browser;
let spans: TestSpan[];
let url: string;

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.start(), connect()]);
  url = await program.url();
  spans = largeTrace(id, size, Date.now() - 600_000);
  for (let i = 0; i < size; i += 5000) await sendSpans(program, spans.slice(i, i + 5000));
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

/** Rows in the document: those that are visible, and a few around them. */
const maxRows = 120;

const tree = (page: Page) => page.getByRole('treegrid', { name: 'Spans' });
const rows = (page: Page) => tree(page).getByRole('row');
const inPage = (page: Page): Promise<number> => page.locator('[role=treegrid] [role=row]').count();

test('a trace of 100,000 spans opens; its rows are those on the screen', async () => {
  const { page, problems } = await newPage(browser);
  await page.goto(`${url}/trace/${id}`);
  await rows(page).first().waitFor();
  await page.getByText('100,000').first().waitFor();
  const folded = Number(await tree(page).getAttribute('aria-rowcount')); // short and repeated spans are not rows of their own
  expect(folded).toBeGreaterThan(100);
  expect(folded).toBeLessThan(size / 10);
  await page.goto(`${url}/trace/${id}?fold=1000`);
  await expect.poll(async () => Number(await tree(page).getAttribute('aria-rowcount'))).toBeGreaterThan(size / 2);
  expect(await inPage(page)).toBeLessThan(maxRows);
  await tree(page).focus();
  await page.keyboard.press('End');
  await expect.poll(() => rows(page).last().getAttribute('aria-rowindex')).toBe(await tree(page).getAttribute('aria-rowcount'));
  expect(await inPage(page)).toBeLessThan(maxRows);
  await page.keyboard.press('Home');
  await expect.poll(() => rows(page).first().getAttribute('aria-level')).toBe('1');
  await page.keyboard.press('e');
  await expect.poll(() => tree(page).getAttribute('aria-activedescendant').then((row) => page.locator(`#${row}`).innerText())).toMatch(/\S/);
  const failed = await tree(page).getAttribute('aria-activedescendant');
  await page.keyboard.press('e');
  await expect.poll(() => tree(page).getAttribute('aria-activedescendant')).not.toBe(failed);
  await page.keyboard.press('z');
  await expect.poll(() => page.url()).toContain('zoom=');
  expect(await inPage(page)).toBeLessThan(maxRows);
  await page.keyboard.press('0');
  await page.keyboard.press('/');
  await page.keyboard.type(marker);
  await page.getByRole('search').getByText(/^100$/).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('search').getByText('1 of 100').waitFor();
  await page.getByText('only matching').click();
  await expect.poll(async () => Number(await tree(page).getAttribute('aria-rowcount'))).toBeLessThan(size / 10);
  expect(problems).toEqual([]);
  await page.context().close();
});

test('a link to a span far down, with zoom, shows it', async () => {
  const last = spans.reduce((a, b) => (b.start > a.start ? b : a));
  const { page } = await newPage(browser);
  await page.goto(`${url}/trace/${id}?span=${last.spanID}&zoom=0.9,1&fold=1000`);
  await page.locator('[role=row][aria-selected=true]').waitFor();
  await expect.poll(() => page.locator('[role=row][aria-selected=true]').innerText()).toContain(last.name);
  await expect.poll(async () => Number(await page.locator('[role=row][aria-selected=true]').getAttribute('aria-rowindex'))).toBeGreaterThan(size / 4);
  await expect(page.locator('[role=row][aria-selected=true]').isVisible()).resolves.toBe(true);
  await page.getByRole('complementary', { name: 'Span details' }).getByText('service.version').or(page.getByRole('tab', { name: /^Resource/ })).first().waitFor();
  await expect.poll(() => page.getByRole('slider', { name: 'Start of the visible time' }).getAttribute('aria-valuenow')).toBe('90');
  expect(await inPage(page)).toBeLessThan(maxRows);
  await page.context().close();
});
