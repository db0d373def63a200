// Starts the Firefox of the distribution.

import { firefox, type Browser } from 'playwright-core';

interface Message {
  id: number;
  method: string;
}

interface Connection {
  rawSend: (message: Message) => void;
  _dispatchMessage: (message: unknown) => void;
}

/** Starts Firefox without windows. Playwright drives it with WebDriver BiDi, because only Playwright's own build has the older protocol. */
export async function launchFirefox(executablePath: string): Promise<Browser> {
  const browser = await firefox.launch({ executablePath, channel: 'moz-firefox', headless: true });
  ignoreMedia(browser);
  return browser;
}

/**
 * Leaves out a command that Playwright sends for each page, and that Firefox ESR 153 does not know: color scheme, reduced
 * motion and print cannot be chosen. Remove this when Firefox ESR knows the command.
 */
function ignoreMedia(browser: Browser): void {
  const { _connection } = browser as unknown as { _connection: { toImpl: (b: Browser) => { _browserSession: { connection: Connection } } } };
  const { connection } = _connection.toImpl(browser)._browserSession;
  const send = connection.rawSend.bind(connection);
  connection.rawSend = (message) => {
    if (message.method !== 'emulation.setMediaFeaturesOverride') send(message);
    else queueMicrotask(() => connection._dispatchMessage({ type: 'success', id: message.id, result: {} }));
  };
}
