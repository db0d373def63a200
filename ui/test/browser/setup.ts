// Starts the Chromium of all test files. It is a server, to which each file connects with contexts of its own.

import { chromium } from 'playwright-core';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    browser: string;
  }
}

/** Starts Chromium if it is installed. The returned function ends it. */
export default async function start(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const executablePath = project.config.env.CHROMIUM;
  if (!executablePath) return undefined;
  const server = await chromium.launchServer({
    executablePath, headless: true, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  });
  project.provide('browser', server.wsEndpoint());
  return () => server.close();
}
