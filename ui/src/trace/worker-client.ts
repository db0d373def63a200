// The page's side of the worker.

import { translations } from '../shell/language';
import { t } from '../shell/text';
import type { CallName, Calls, Reply } from './protocol';

/** A worker whose calls return promises. */
export class WorkerClient {
  private readonly worker = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' });
  private readonly waiting = new Map<number, { resolve: (result: unknown) => void; reject: (reason: Error) => void }>();
  private last = 0;
  private broken: Error | null = null;

  constructor() {
    this.worker.onmessage = (event: MessageEvent<Reply>): void => this.settle(event.data);
    this.worker.onerror = (event): void => {
      this.broken = new Error(event.message || t('The worker that processes traces cannot be started. Reload the page.'));
      for (const w of this.waiting.values()) w.reject(this.broken);
      this.waiting.clear();
    };
    if (translations) void this.call('language', translations).catch(() => undefined);
  }

  call<K extends CallName>(call: K, args: Calls[K]['in'], transfer: Transferable[] = []): Promise<Calls[K]['out']> {
    if (this.broken) return Promise.reject(this.broken);
    const id = ++this.last;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve: resolve as (result: unknown) => void, reject });
      this.worker.postMessage({ id, call, args }, transfer);
    });
  }

  private settle(reply: Reply): void {
    const w = this.waiting.get(reply.id);
    this.waiting.delete(reply.id);
    if (reply.error !== undefined) w?.reject(new Error(reply.error));
    else w?.resolve(reply.result);
  }

  close(): void {
    this.worker.terminate();
    for (const w of this.waiting.values()) w.reject(new DOMException('aborted', 'AbortError'));
    this.waiting.clear();
  }
}
