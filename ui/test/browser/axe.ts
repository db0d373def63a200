// Checks a page with axe-core.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults, RunOptions } from 'axe-core';
import type { Page } from 'playwright-core';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe-core found in a state of a page: one line for each rule and element. */
export interface Findings {
  /** Serious or critical. */
  grave: string[];
  minor: string[];
}

const all: RunOptions = { resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } };
const colors: RunOptions = { resultTypes: ['violations'], runOnly: ['color-contrast', 'link-in-text-block'] };

/** Runs all rules in the light theme, and those of colors in the dark one. */
export async function check(page: Page, name: string): Promise<Findings> {
  const findings: Findings = { grave: [], minor: [] };
  for (const [colorScheme, options] of [['light', all], ['dark', colors]] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    for (const { id, impact, nodes } of (await run(page, options)).violations) {
      const list = impact === 'serious' || impact === 'critical' ? findings.grave : findings.minor;
      for (const node of nodes) list.push(`${name}, ${colorScheme}: ${id} (${impact}): ${node.target.join(' ')}: ${summary(node)}\n  ${node.html.slice(0, 200)}`);
    }
  }
  return findings;
}

async function run(page: Page, options: RunOptions): Promise<AxeResults> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(source);
  return page.evaluate((o) => (window as unknown as { axe: { run(o: RunOptions): Promise<AxeResults> } }).axe.run(o), options);
}

function summary(node: AxeResults['violations'][number]['nodes'][number]): string {
  return (node.failureSummary ?? '').split('\n').slice(1).join(' ').replace(/\s+/g, ' ').trim();
}
