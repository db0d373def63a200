// The two sources of traces: a server and files.

import { ApiError, bytesOf, request, unreadable, type Params } from '../api/client';
import type { AttributeColumn, AttributeKeys, Envelope, Found, SpanDetail, SpanDetails } from '../api/types';
import { terms } from './model/find';
import type { AttributeValues, Extras, FileContent, FindResult, TraceModel, TraceSource } from './model/types';
import type { Comparison } from '../compare/types';
import type { InputFile } from './protocol';
import { requestOutline, takeEarly } from './early';
import { WorkerClient } from './worker-client';

/** A trace of the server. Its worker starts at once. */
export function serverSource(traceID: string): TraceSource {
  return new ServerSource(traceID);
}

/** Maximum number of spans for which the server answers at once. */
const maxDetails = 100;
/** Maximum number of words that the server looks for in attributes. */
const maxWords = 8;

class ServerSource implements TraceSource {
  readonly kind = 'server';
  readonly file = '';
  private readonly worker: WorkerClient;
  private etag = '';
  /** The server has no outlines; the worker has the spans in full. */
  private whole = false;
  /** The answer to a request that is already on its way. */
  private early: Promise<Response> | null;
  private readonly abortEarly: () => void;

  constructor(readonly traceID: string) {
    const early = takeEarly(traceID);
    this.early = early?.response ?? null;
    this.abortEarly = early?.abort ?? (() => {});
    this.worker = early?.worker ?? new WorkerClient();
  }

  async load(skew: boolean, signal?: AbortSignal): Promise<TraceModel | null> {
    if (this.whole) return this.loadWhole(skew, signal);
    let response: Response;
    try {
      response = await (this.early ?? requestOutline(this.traceID, { signal, headers: this.etag ? { 'If-None-Match': this.etag } : {} }));
    } catch (e) {
      if (!isMissingRoute(e)) throw e;
      return this.loadWhole(skew, signal, e);
    } finally {
      this.early = null;
    }
    if (response.status === 304) return null;
    if (!isJSON(response)) return this.loadWhole(skew, signal);
    const bytes = await bytesOf(response, signal);
    const model = await this.worker.call('outline', { bytes, skew }, [bytes]);
    this.etag = response.headers.get('etag') ?? '';
    return model;
  }

  /** Loads the trace in Jaeger's format. If that fails, too, the first error says more. */
  private async loadWhole(skew: boolean, signal?: AbortSignal, first?: ApiError): Promise<TraceModel> {
    const response = await request(`/api/traces/${encodeURIComponent(this.traceID)}`, {}, { signal }).catch((e: unknown) => {
      throw first && e instanceof ApiError && e.status === 404 ? first : e;
    });
    if (!isJSON(response)) throw new ApiError(0, unreadable);
    const bytes = await bytesOf(response, signal);
    const model = await this.worker.call('whole', { bytes, skew }, [bytes]);
    this.whole = true;
    return model;
  }

  withSkew(skew: boolean): Promise<TraceModel> {
    return this.worker.call('skew', { skew });
  }

  async details(ids: string[], signal?: AbortSignal): Promise<SpanDetail[]> {
    if (this.whole) return this.worker.call('details', { ids });
    const spans: SpanDetail[] = [];
    for (let i = 0; i < ids.length; i += maxDetails) {
      spans.push(...(await this.ask<SpanDetails>('spans', { ids: ids.slice(i, i + maxDetails).join(',') }, signal)).spans);
    }
    return spans;
  }

  async find(q: string, onResult: (result: FindResult) => void, signal?: AbortSignal): Promise<void> {
    const local = await this.worker.call('find', { q, ids: [] });
    if (signal?.aborted) return;
    onResult({ ...local, message: '' });
    const words = terms(q);
    if (local.complete || words.length === 0) return;
    let message = '';
    const ids = await Promise.all(words.slice(0, maxWords).map((word) => this.findWord(word, signal))).catch((e: unknown) => {
      message = e instanceof Error ? e.message : String(e);
    });
    if (signal?.aborted) return;
    if (!ids) onResult({ ...local, message });
    else onResult({ ...(await this.worker.call('find', { q, ids })), message: '' });
  }

  extras(): Promise<Extras> {
    return this.worker.call('extras', {});
  }

  async keys(signal?: AbortSignal): Promise<AttributeKeys> {
    if (this.whole) return this.worker.call('keys', {});
    return this.ask<AttributeKeys>('keys', {}, signal);
  }

  async values(field: string, signal?: AbortSignal): Promise<AttributeValues> {
    const column = this.whole ? null : await this.ask<AttributeColumn>('values', { key: field }, signal);
    return this.worker.call('values', { field, column });
  }

  /** Asks a route below that of the outline. */
  private async ask<T>(route: string, params: Params, signal?: AbortSignal): Promise<T> {
    const response = await request(`/api/ui/v1/outline/${encodeURIComponent(this.traceID)}/${route}`, params, { signal });
    return ((await response.json()) as Envelope<T>).data;
  }

  /** Ids of the spans that contain a word in any attribute, in base64. */
  private async findWord(word: string, signal?: AbortSignal): Promise<string> {
    return (await this.ask<Found>('find', { q: word }, signal)).ids;
  }

  compare(a: TraceModel, b: TraceModel): Promise<Comparison> {
    return this.worker.call('compare', { a, b });
  }

  close(): void {
    this.abortEarly();
    this.worker.close();
  }
}

/** Whether an error means that the server does not know the route, and not that it does not have the trace. */
function isMissingRoute(e: unknown): e is ApiError {
  return e instanceof ApiError && (e.status === 501 || e.status === 405 || (e.status === 404 && e.message !== 'trace not found'));
}

function isJSON(response: Response): boolean {
  return (response.headers.get('content-type') ?? '').includes('json');
}

/** Files that the user has opened. They are processed by a worker and never sent anywhere. */
export class Files {
  private readonly worker = new WorkerClient();
  /** The trace that the worker holds in full. */
  private current = '';

  /** Reads files, in addition to those read before. */
  read(files: InputFile[]): Promise<FileContent> {
    return this.worker.call('read', { files });
  }

  /** A trace of the files. Only one can be open at a time. */
  source(traceID: string, file: string): TraceSource {
    const { worker } = this;
    let loaded = false;
    const open = (skew: boolean): Promise<TraceModel> => {
      this.current = traceID;
      return worker.call('open', { traceID, skew });
    };
    return {
      kind: 'file', traceID, file,
      async load(skew) {
        if (loaded) return null;
        const model = await open(skew);
        loaded = true;
        return model;
      },
      withSkew: (skew) => worker.call('skew', { skew }),
      details: async (ids) => {
        if (this.current !== traceID) await open(true); // of two traces that are compared
        return worker.call('details', { ids });
      },
      compare: (a, b) => worker.call('compare', { a, b }),
      async find(q, onResult, signal) {
        const result = await worker.call('find', { q, ids: [] });
        if (!signal?.aborted) onResult({ ...result, message: '' });
      },
      extras: () => worker.call('extras', {}),
      keys: () => worker.call('keys', {}),
      values: (field) => worker.call('values', { field, column: null }),
      close() {}, // the worker keeps the files
    };
  }

  /** Forgets the files. */
  close(): void {
    this.worker.close();
  }
}
