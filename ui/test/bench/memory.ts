// Memory of a page and of its worker, from the debugging protocol.

import type { CDPSession, Page } from 'playwright-core';

/** Bytes of JavaScript objects, and of typed arrays, which are outside of the heap. */
export interface HeapUsage {
  usedSize: number;
  backingStorageSize: number;
}

/** Memory of a page with one worker. */
export interface Memory {
  page: HeapUsage;
  worker: HeapUsage;
}

/** Memory in use, without a garbage collection before. */
export async function memoryOf(page: Page): Promise<Memory> {
  const session = await page.context().newCDPSession(page);
  const usage = (await session.send('Runtime.getHeapUsage')) as HeapUsage;
  return { page: usage, worker: await askWorker<HeapUsage>(session, 'Runtime.getHeapUsage') };
}

/** Sends a command to the worker of the page. */
async function askWorker<T>(session: CDPSession, method: string): Promise<T> {
  const answer = new Promise<T>((resolve, reject) => session.on('Target.receivedMessageFromTarget', (e) => {
    const { id, result } = JSON.parse(e.message) as { id?: number; result?: T };
    if (id !== 1) return; // an event
    if (result) resolve(result);
    else reject(new Error(`worker: ${method}: ${e.message}`));
  }));
  const attached = new Promise<string>((resolve) => session.on('Target.attachedToTarget', (e) => resolve(e.sessionId)));
  await session.send('Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: false, flatten: false });
  await session.send('Target.sendMessageToTarget', { sessionId: await attached, message: JSON.stringify({ id: 1, method }) });
  return answer;
}
