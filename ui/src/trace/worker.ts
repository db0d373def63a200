// The worker of the trace page: decodes and searches traces, and reads files.

import { Handler } from './handler';
import type { CallMessage, Reply } from './protocol';

const handler = new Handler();
let queue = Promise.resolve();

// One call after the other: a call can depend on the one before.
self.onmessage = (event: MessageEvent<CallMessage>): void => {
  const { id, call, args } = event.data;
  queue = queue.then(async () => {
    let reply: Reply;
    try {
      reply = { id, result: await handler.handle(call, args) };
    } catch (e) {
      reply = { id, error: e instanceof Error ? e.message : String(e) };
    }
    self.postMessage(reply);
  });
};
