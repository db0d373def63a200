// The only module that sends requests: abort, sharing, a small cache, credentials and the tenant.

import { signal } from '@preact/signals';
import { t } from '../shell/text';
import { boot } from './boot';
import type { Envelope } from './types';
import { base } from '../shell/url';

/** A failed request. `status` is 0 if there was no answer. */
export class ApiError extends Error {
  /** `retryAfter` is the number of seconds that the server asks to wait. */
  constructor(readonly status: number, message: string, readonly retryAfter = 0) {
    super(message);
    this.name = 'ApiError';
  }

  /** Whether the same request can succeed later. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || (this.status >= 500 && this.status !== 501);
  }
}

/** An answer that is not what the server sends, or not all of it. */
export const unreadable = t('The server\'s response cannot be read.');
export const endedEarly = t('The server\'s response ended early.');

/** Credentials of the user: an Authorization header in memory only, never stored. */
export const authorization = signal('');

/** Tenant of the requests, and the name of the header. */
export const tenant = signal('');
export const tenantHeader = signal(boot.tenantHeader || 'x-tenant');

/** The server asks for credentials (401); the reason to show. */
export const loginRequired = signal('');

/** The user closed the dialog that asks for credentials: a button of the top bar opens it again. */
export const loginDismissed = signal(false);

export type Params = Record<string, string | number | string[] | undefined>;

/** Options of a request. */
export interface RequestOptions {
  signal?: AbortSignal;
  /** Maximum age in milliseconds of an answer in the cache. 0 always asks the server. */
  maxAge?: number;
  method?: 'GET' | 'POST';
  /** Milliseconds until the answer must begin. */
  timeout?: number;
  headers?: Record<string, string>;
}

/** URL of an API route, which begins with `/api/`. */
export function apiURL(path: string, params: Params = {}): string {
  const p = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    for (const item of Array.isArray(value) ? value : [value]) if (item !== undefined && item !== '') p.append(key, String(item));
  }
  const query = p.toString();
  return base + path + (query ? '?' + query : '');
}

/** Sends a request and returns the response; throws ApiError unless its status is 2xx or 304. */
export async function request(path: string, params: Params = {}, options: RequestOptions = {}): Promise<Response> {
  // With this header, the server answers 401 without a challenge that would open a dialog of the browser.
  const headers: Record<string, string> = { 'X-Requested-With': 'XMLHttpRequest', ...options.headers };
  if (authorization.value) headers.Authorization = authorization.value;
  if (tenant.value) headers[tenantHeader.value] = tenant.value;
  const late = new AbortController();
  const { timeout = 120_000 } = options; // queries of the server end earlier
  const timer = setTimeout(() => late.abort(), timeout);
  const signal = options.signal ? AbortSignal.any([options.signal, late.signal]) : late.signal;
  let response: Response;
  try {
    response = await fetch(apiURL(path, params), { method: options.method ?? 'GET', headers, signal, credentials: 'same-origin' });
  } catch (e) {
    if (options.signal?.aborted) throw e;
    throw new ApiError(0, late.signal.aborted ? t('The server has not responded within {answerTimeout} s.', { answerTimeout: timeout / 1000 }) : t('The server does not respond.'));
  } finally {
    clearTimeout(timer);
  }
  if (response.ok || response.status === 304) return response;
  throw await failure(response);
}

/** The bytes of an answer; throws ApiError if the connection is lost. */
export async function bytesOf(response: Response, signal?: AbortSignal): Promise<ArrayBuffer> {
  try {
    return await response.arrayBuffer();
  } catch (e) {
    throw signal?.aborted ? e : new ApiError(0, endedEarly);
  }
}

async function failure(response: Response): Promise<ApiError> {
  const text = (await response.text().catch(() => '')).slice(0, 4096);
  const message = messageOf(text) || statusMessages[response.status] || t('The server responded with status {status}.', { status: response.status });
  if (response.status === 401) loginRequired.value = messageOf(text) || t('The server requires credentials.');
  return new ApiError(response.status, message, Number(response.headers.get('retry-after')) || 0);
}

/** What answers without a message mean: most are of proxies. */
const statusMessages: Record<number, string> = {
  429: t('The server is handling too many requests.'),
  502: t('A proxy got no response from the server (status 502).'),
  503: t('The server is not available (status 503).'),
  504: t('The server took too long (status 504).'),
};

/** The message of an error of the API, or a short text; "" if the answer is something else, such as the page of a proxy. */
function messageOf(text: string): string {
  try {
    return (JSON.parse(text) as Envelope<unknown>).errors?.[0]?.msg ?? '';
  } catch {
    return text.length > 300 || /^\s*</.test(text) ? '' : text.trim();
  }
}

interface Cached {
  at: number;
  answer: Envelope<unknown>;
}

const maxCached = 64;
const cache = new Map<string, Cached>();
const pending = new Map<string, { promise: Promise<Envelope<unknown>>; users: number; abort: AbortController }>();

/** Forgets cached answers: after a change of credentials or tenant. */
export function clearCache(): void {
  cache.clear();
}

/** Asks `/api/ui/v1/NAME`, or the path `name` of another API, whose whole answer is the data. Equal concurrent requests are sent once; the request ends when all its users have aborted. */
export async function get<T>(name: string, params: Params = {}, options: RequestOptions = {}): Promise<Envelope<T>> {
  const other = name.startsWith('/');
  const path = other ? name : '/api/ui/v1/' + name;
  const key = apiURL(path, params);
  const cached = cache.get(key);
  if (cached && Date.now() - cached.at < (options.maxAge ?? 0)) return cached.answer as Envelope<T>;
  let shared = pending.get(key);
  if (!shared) {
    const abort = new AbortController();
    const promise = request(path, params, { headers: options.headers, signal: abort.signal })
      .then((r) => r.json())
      .then((body) => {
        const answer: Envelope<unknown> = other ? { data: body } : body;
        remember(key, answer);
        return answer;
      })
      .finally(() => {
        if (pending.get(key)?.promise === promise) pending.delete(key);
      });
    shared = { promise, users: 0, abort };
    pending.set(key, shared);
  }
  return follow(shared, key, options.signal) as Promise<Envelope<T>>;
}

/** Waits for a shared request; the last user that aborts ends it. */
function follow(shared: { promise: Promise<Envelope<unknown>>; users: number; abort: AbortController }, key: string, signal?: AbortSignal): Promise<Envelope<unknown>> {
  shared.users++;
  if (!signal) return shared.promise;
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      if (--shared.users === 0) {
        pending.delete(key);
        shared.abort.abort();
      }
      reject(new DOMException('aborted', 'AbortError'));
    };
    if (signal.aborted) return leave();
    signal.addEventListener('abort', leave, { once: true });
    shared.promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}

function remember(key: string, answer: Envelope<unknown>): void {
  cache.delete(key);
  cache.set(key, { at: Date.now(), answer });
  if (cache.size > maxCached) cache.delete(cache.keys().next().value!);
}

/** Reads an NDJSON answer line by line, until it ends or is aborted. */
export async function stream<T>(name: string, params: Params, onLine: (line: T) => void, signal: AbortSignal): Promise<void> {
  const response = await request('/api/ui/v1/' + name, params, { signal });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    const lines = (rest + (value ?? '')).split('\n');
    rest = done ? '' : lines.pop()!;
    for (const line of lines) if (line) onLine(JSON.parse(line) as T);
    if (done) return;
  }
}
