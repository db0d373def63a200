// Actions on the whole trace: downloads, copies, archive.

import { get, request } from '../api/client';
import type { Config } from '../api/types';
import { useEffect, useState } from 'preact/hooks';
import type { MenuItem } from '../shell/floating';
import { t } from '../shell/text';
import { copy, toast } from '../shell/toast';
import type { TraceSource } from './model/types';
import type { TraceState } from './state';

/** Items of the actions menu. A trace of a file is on the user's disk already. */
export function traceActions(state: TraceState, archive: (() => void) | null): MenuItem[] {
  const { source } = state;
  const id = state.model.value.traceID;
  const path = encodeURIComponent(id);
  const copies: MenuItem[] = [{ label: t('Copy trace ID'), onSelect: () => void copy(id, t('Trace ID')) }];
  if (source.kind === 'file') return copies;
  return [
    { label: t('Copy link'), onSelect: () => void copy(location.href, t('Link')) },
    ...copies,
    { label: t('View JSON'), onSelect: () => void viewJSON(`/api/traces/${path}`) },
    { label: t('Download Jaeger JSON'), onSelect: () => void download(`/api/traces/${path}`, `trace-${id}.json`) },
    { label: t('Download OTLP JSON'), onSelect: () => void download(`/api/v3/traces/${path}`, `trace-${id}-otlp.json`, unwrap) },
    ...(archive ? [{ label: t('Archive'), onSelect: archive }] : []),
  ];
}

/** The function that archives the trace, or null where no archive is configured. */
export function useArchive(source: TraceSource): (() => void) | null {
  const [possible, setPossible] = useState(false);
  useEffect(() => {
    if (source.kind !== 'server') return;
    get<Config>('config', {}, { maxAge: Infinity }).then((c) => setPossible(c.data.capabilities.archive), () => undefined);
  }, [source]);
  return possible ? () => void archiveTrace(source.traceID) : null;
}

async function archiveTrace(id: string): Promise<void> {
  try {
    await request(`/api/archive/${encodeURIComponent(id)}`, {}, { method: 'POST' });
    toast(t('Trace archived'));
  } catch (e) {
    toast(t('The trace was not archived: {reason}', { reason: messageOf(e) }));
  }
}

/** The API wraps OTLP in `result`; files have it at the top, so that collectors and this page read them. */
async function unwrap(blob: Blob): Promise<Blob> {
  const answer = JSON.parse(await blob.text()) as { result?: unknown };
  return new Blob([JSON.stringify(answer.result ?? answer)], { type: 'application/json' });
}

/** Fetches with the credentials of the page, which links cannot send, and saves the answer. */
async function download(path: string, file: string, change: (blob: Blob) => Promise<Blob> | Blob = (b) => b): Promise<void> {
  try {
    const blob = await change(await (await request(path)).blob());
    const a = document.createElement('a');
    a.href = URL.createObjectURL(blob);
    a.download = file;
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
  } catch (e) {
    toast(t('The download failed: {reason}', { reason: messageOf(e) }));
  }
}

/** Shows JSON in a new tab. The tab opens before the answer comes, because browsers block tabs that open later. */
async function viewJSON(path: string): Promise<void> {
  const tab = open('', '_blank');
  try {
    const answer: unknown = await (await request(path)).json();
    const url = URL.createObjectURL(new Blob([JSON.stringify(answer, null, 2)], { type: 'application/json' }));
    if (tab) tab.location.href = url;
    else toast(t('The browser blocked the new tab. Allow it for this page, or download the trace.'));
  } catch (e) {
    tab?.close();
    toast(t('The trace cannot be shown as JSON: {reason}', { reason: messageOf(e) }));
  }
}

function messageOf(e: unknown): string {
  return e instanceof Error ? e.message : String(e);
}
