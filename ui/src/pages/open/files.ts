// The open files. They stay open while the user visits other pages, until the browser tab is closed.

import { signal } from '@preact/signals';
import { linked, navigate, view } from '../../shell/url';
import { Files } from '../../trace/client';
import type { FileContent, TraceSource } from '../../trace/model/types';
import type { InputFile } from '../../trace/protocol';

const nothing: FileContent = { traces: [], problems: [] };

/** What was read from the open files. */
export const content = signal<FileContent>(nothing);

/** Number of files that are being read. */
export const reading = signal(0);

let files: Files | null = null;

/** Loads the program parts that read files, so that the page works offline from now on. */
export async function prepare(): Promise<void> {
  files ??= new Files();
  await Promise.all([import('../../trace/trace-view').then((m) => m.preloadParts()), files.read([])]);
}

/** Reads files in addition to the open ones. A single new trace is shown at once. */
export async function read(input: InputFile[]): Promise<void> {
  files ??= new Files();
  const before = new Set(content.value.traces.map((t) => t.traceID));
  reading.value += input.length;
  try {
    content.value = await files.read(input);
  } catch (e) {
    const text = e instanceof Error ? e.message : String(e);
    content.value = { ...content.value, problems: [...content.value.problems, { file: input.map((f) => f.name).join(', '), text }] };
  } finally {
    reading.value -= input.length;
  }
  const added = content.value.traces.filter((t) => !before.has(t.traceID));
  const { route } = view.value;
  if (added.length === 1 && route.page === 'open' && !route.id) navigate(linked({ page: 'open', id: added[0].traceID }));
}

/** The source of a trace of the open files, or null if none of them has it. */
export function sourceOf(traceID: string): TraceSource | null {
  const trace = content.value.traces.find((t) => t.traceID === traceID);
  return trace && files ? files.source(traceID, trace.file) : null;
}

/** Closes all files. */
export function closeAll(): void {
  files?.close();
  files = null;
  content.value = nothing;
}
