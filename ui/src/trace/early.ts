// The trace of the URL is requested, and its worker started, while the code of the page is loaded.

import { authorization, request, tenant, type RequestOptions } from '../api/client';
import { WorkerClient } from './worker-client';

/** A request that was sent early, and a worker for its answer. */
interface Early {
  traceID: string;
  credentials: string;
  response: Promise<Response>;
  abort: () => void;
  worker: WorkerClient;
}

let early: Early | null = null;

const credentials = (): string => `${authorization.peek()}\n${tenant.peek()}`;

/** Asks for the outline of a trace. */
export function requestOutline(traceID: string, options: RequestOptions = {}): Promise<Response> {
  return request(`/api/ui/v1/outline/${encodeURIComponent(traceID)}`, {}, options);
}

/** Begins to load a trace, whose source takes over later. */
export function startEarly(traceID: string): void {
  const abort = new AbortController();
  const response = requestOutline(traceID, { signal: abort.signal });
  response.catch(() => undefined); // the page handles errors once it is loaded
  document.querySelector('link[as=fetch]')?.remove(); // the same request of the server's page, which would outlive an abort
  early = { traceID, credentials: credentials(), response, abort: () => abort.abort(), worker: new WorkerClient() };
}

/** What was begun for a trace, at most once. Something else that was begun ends. */
export function takeEarly(traceID: string): Early | null {
  const taken = early;
  early = null;
  if (!taken || (taken.traceID === traceID && taken.credentials === credentials())) return taken;
  taken.abort();
  taken.worker.close();
  return null;
}
