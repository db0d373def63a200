// Calls of the worker: what the page asks and what it gets.

import type { AttributeColumn, AttributeKeys, SpanDetail } from '../api/types';
import type { Comparison } from '../compare/types';
import type { Catalog } from '../shell/text';
import type { AttributeValues, Extras, FileContent, TraceModel } from './model/types';

/** A file to read. */
export interface InputFile {
  name: string;
  blob: Blob;
}

/** Calls by name: parameters and result. */
export interface Calls {
  /** Chooses the language of what the worker says. */
  language: { in: Catalog; out: void };
  /** Decodes an answer of `outline/{id}`. */
  outline: { in: { bytes: ArrayBuffer; skew: boolean }; out: TraceModel };
  /** Decodes an answer of `/api/traces/{id}`, for servers without outlines. */
  whole: { in: { bytes: ArrayBuffer; skew: boolean }; out: TraceModel };
  /** Builds the current trace again. */
  skew: { in: { skew: boolean }; out: TraceModel };
  /** Finds spans of the current trace; `ids` are those that the server found for each word, in base64, or [] if it was not asked. */
  find: { in: { q: string; ids: string[] }; out: { spans: Int32Array; complete: boolean } };
  /** Spans of the current trace in full. Only for traces that the worker has read in full. */
  details: { in: { ids: string[] }; out: SpanDetail[] };
  /** Own times and lanes of the current trace. */
  extras: { in: {}; out: Extras };
  /** Keys of attributes. Only for traces that the worker has read in full. */
  keys: { in: {}; out: AttributeKeys };
  /** Values of an attribute of the spans of the current trace: of the answer of the server, or of what the worker has read. */
  values: { in: { field: string; column: AttributeColumn | null }; out: AttributeValues };
  /** Matches two traces, which need not be the current one. */
  compare: { in: { a: TraceModel; b: TraceModel }; out: Comparison };
  /** Reads files; the traces are added to those of files read before. */
  read: { in: { files: InputFile[] }; out: FileContent };
  /** Makes a trace of a file the current one. */
  open: { in: { traceID: string; skew: boolean }; out: TraceModel };
}

export type CallName = keyof Calls;

/** A message to the worker. */
export interface CallMessage<K extends CallName = CallName> {
  id: number;
  call: K;
  args: Calls[K]['in'];
}

/** A message from the worker. */
export interface Reply {
  id: number;
  result?: unknown;
  error?: string;
}
