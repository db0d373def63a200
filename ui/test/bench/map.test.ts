// `make bench-ui`: time until the map of 30, 200 and 1,000 services is drawn, of its layout alone, and of a jump to a service.

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect, newPage } from '../browser/browser.ts';
import { Program } from '../browser/program.ts';
import { generate } from '../map/generate.ts';
import { printTable, report } from './table.ts';

const runs = Number(process.env.RUNS ?? 5);
const ready = '[data-state=ready] svg[role=group]';

let program: Program;
let browser: Browser;
let url: string;

beforeAll(async () => {
  [program, browser] = await Promise.all([Program.start(), connect()]);
  url = await program.url();
});

afterAll(async () => {
  printTable();
  await browser?.close();
  await program?.stop();
});

test.each([30, 200, 1000])('the map of %i services', async (services) => {
  const [drawn, layout, jump]: number[][] = [[], [], []];
  for (let i = 0; i < runs; i++) {
    const { page, problems } = await newPage(browser);
    const json = { data: generate(services, { end: Date.now() }), errors: null };
    await page.route('**/api/ui/v1/map?*', (route) => route.fulfill({ json }));
    await page.goto(url + '/dependencies');
    await page.waitForSelector(ready);
    drawn.push(await page.evaluate(() => performance.now()));
    layout.push(await page.evaluate(() => performance.getEntriesByName('map-layout')[0].duration));
    const name = json.data.nodes.name[Math.floor(services / 2)];
    const began = Date.now();
    await page.getByRole('combobox', { name: 'Find a service' }).fill(name);
    await page.keyboard.press('Enter');
    await page.locator(ready).getByRole('button', { name: new RegExp(`^${name} `) }).waitFor();
    jump.push(Date.now() - began);
    expect(problems).toEqual([]);
    await page.context().close();
  }
  report(`map of ${services} services, drawn after`, '', 'ms', drawn);
  report(`map of ${services} services, layout`, '', 'ms', layout);
  report(`map of ${services} services, found and drawn`, '', 'ms', jump);
});
