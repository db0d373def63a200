import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Facets } from '../api/types';
import { capable, config } from '../shell/config';
import { Button } from '../shell/controls';
import { ExternalLinks } from '../shell/external-links';
import { linksFor, type FilledLink } from '../shell/link-templates';
import { resolveRange } from '../shell/range';
import { rangeText } from './saved-text';
import { t, tn } from '../shell/text';
import { copy, toast } from '../shell/toast';
import { base, link, view, visit } from '../shell/url';
import { useRequest } from '../shell/use-request';
import { Highlight } from './highlight';
import { readHistory } from './history';
import { encodeSaved, maxLink, maxName, merge, parseSaved, replaceSaved, save, savedSearches, searchOf, type SavedSearch } from './saved';
import { attributesOf, traceQL, type TraceQL } from './traceql';
import css from './searches-menu.module.css';

/** Replaces the searches, says so, and offers to undo it. */
function change(next: SavedSearch[], text: string): void {
  const before = savedSearches.peek();
  replaceSaved(next);
  toast(text, () => replaceSaved(before));
}

/** Content of the menu: name and keep this search, open, rename and delete saved ones, and the last searches. */
export default function SearchesPanel({ onChoose, close }: { onChoose: (text: string) => void; close: () => void }) {
  const root = useRef<HTMLDivElement>(null);
  // The content comes after the surface was focused.
  useLayoutEffect(() => root.current!.querySelector<HTMLElement>('input')!.focus(), []);
  const key = (e: KeyboardEvent): void => {
    if (e.key !== 'ArrowDown' && e.key !== 'ArrowUp') return;
    const stops = [...root.current!.querySelectorAll<HTMLElement>('input:not([type=file]), [data-stop]')];
    const next = stops.indexOf(document.activeElement as HTMLElement) + (e.key === 'ArrowDown' ? 1 : -1);
    if (next < 0 || next >= stops.length) return;
    e.preventDefault();
    stops[next].focus();
  };
  return (
    <div ref={root} class={css.panel} onKeyDown={key}>
      <SaveForm />
      <Saved close={close} focus={() => requestAnimationFrame(() => root.current?.querySelector<HTMLElement>('input')?.focus())} />
      <Transfer />
      <Last onChoose={onChoose} />
    </div>
  );
}

function SaveForm() {
  const [name, setName] = useState('');
  const url = searchOf(view.value);
  const same = savedSearches.value.find((s) => s.url === url);
  const send = (e: Event): void => {
    e.preventDefault();
    const clean = name.trim();
    if (!clean) return;
    const taken = savedSearches.value.some((s) => s.name === clean);
    change(save(savedSearches.value, { name: clean, url }), taken ? t('{name} replaced', { name: clean }) : t('{name} saved', { name: clean }));
    setName('');
  };
  return (
    <form class={css.form} onSubmit={send}>
      <input class={css.name} value={name} maxLength={maxName} aria-label={t('Name of this search')} placeholder={same ? t('Saved as {name}; new name', { name: same.name }) : t('Name this search')} onInput={(e) => setName(e.currentTarget.value)} />
      <Button type="submit" disabled={name.trim() === ''}>{t('Save')}</Button>
    </form>
  );
}

function Saved({ close, focus }: { close: () => void; focus: () => void }) {
  const [renaming, setRenaming] = useState('');
  const all = savedSearches.value;
  if (all.length === 0) return <p class={css.none}>{t('No saved searches yet. They keep the search, time range, tab and columns, in this browser.')}</p>;
  return (
    <ul class={css.list} aria-label={t('Saved searches')}>
      {all.map((s) => (
        <li key={s.name} class={css.row}>
          {renaming === s.name ? <Rename s={s} done={() => { setRenaming(''); focus(); }} /> : (
            <>
              <button type="button" data-stop class={css.entry} title={s.url} onClick={() => { close(); visit(base + s.url); }}><b>{s.name}</b> <span class={css.range}>{rangeText(s.url)}</span></button>
              <Button kind="quiet" label={t('Copy a link to {name}', { name: s.name })} icon="link" onClick={() => void copy(location.origin + base + s.url, t('Link'))} />
              <Button kind="quiet" aria-label={t('Rename {name}', { name: s.name })} onClick={() => setRenaming(s.name)}>{t('Rename')}</Button>
              <Button kind="quiet" label={t('Delete {name}', { name: s.name })} icon="x" onClick={() => { change(all.filter((o) => o !== s), t('{name} deleted', { name: s.name })); focus(); }} />
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

function Rename({ s, done }: { s: SavedSearch; done: () => void }) {
  const [name, setName] = useState(s.name);
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => input.current!.select(), []);
  const send = (e: Event): void => {
    e.preventDefault();
    const clean = name.trim();
    const others = savedSearches.value.filter((o) => o.name !== s.name);
    if (clean && clean !== s.name) change(save(others, { name: clean, url: s.url }), t('Renamed to {name}', { name: clean }));
    done();
  };
  const key = (e: KeyboardEvent): void => {
    if (e.key !== 'Escape') return;
    e.stopPropagation();
    done();
  };
  return (
    <form class={css.form} onSubmit={send} onKeyDown={key}>
      <input ref={input} class={css.name} value={name} maxLength={maxName} aria-label={t('New name of {name}', { name: s.name })} onInput={(e) => setName(e.currentTarget.value)} />
      <Button type="submit">{t('Rename')}</Button>
    </form>
  );
}

/** The search in TraceQL; an empty one finds all spans. */
function useTraceQL(): TraceQL & { loading: boolean } {
  const { q } = view.value;
  const fields = attributesOf(q);
  // Facets of no time have the names of attributes.
  const { data, loading } = useRequest<Facets>(fields[0] && capable('aggregates') ? 'facets' : null, { fields, start: 1, end: 1 }, { maxAge: 60_000 });
  const { text, unknown } = traceQL(q, new Map(data?.facets.flatMap((f) => (f.names ? [[f.field, f.names]] : []))));
  return { text: text || '{}', unknown, loading };
}

/** Links from the search to other systems: none if TraceQL does not have parts of it. */
function searchLinks({ text, unknown }: TraceQL): FilledLink[] {
  if (unknown.length > 0) return [];
  const { from, to } = resolveRange(view.value.range, Date.now());
  const nanos = (millis: number): bigint => BigInt(millis) * 1_000_000n;
  return linksFor(config.value?.links ?? [], 'search', { query: text, start: nanos(from), end: nanos(to) });
}

/** Copies the search for Grafana. */
async function copyTraceQL({ text, unknown }: TraceQL): Promise<void> {
  await copy(text, 'TraceQL');
  if (unknown.length > 0) toast(t('Copied, but TraceQL does not have {parts}', { parts: unknown.join(', ') }));
}

/** Copies this search; export and import of all saved searches. */
function Transfer() {
  const file = useRef<HTMLInputElement>(null);
  const all = savedSearches.value;
  const search = useTraceQL();
  const copyLink = (): void => {
    const url = location.origin + link({ page: 'explore' }, { saved: encodeSaved(all) });
    if (url.length > maxLink) toast(t('There are too many for a link. Download a file instead.'));
    else void copy(url, t('Link to all saved searches'));
  };
  const read = async (f: File | undefined): Promise<void> => {
    if (!f) return;
    const found = parseSaved(await f.text());
    if (found.length === 0) return toast(t('{file} contains no saved searches', { file: f.name }));
    importSaved(found);
  };
  return (
    <p class={css.transfer}>
      <Button kind="quiet" icon="copy" title={t('Copies this search for Grafana')} disabled={search.loading} onClick={() => void copyTraceQL(search)}>{t('Copy as TraceQL')}</Button>
      <ExternalLinks links={searchLinks(search)} />
      {all.length > 0 && <Button kind="quiet" icon="link" onClick={copyLink}>{t('Copy as link')}</Button>}
      {all.length > 0 && <Button kind="quiet" icon="down" onClick={() => download(all)}>{t('Download')}</Button>}
      <Button kind="quiet" icon="up" onClick={() => file.current!.click()}>{t('Import a file')}</Button>
      <input ref={file} type="file" accept="application/json,.json" hidden onChange={(e) => void read(e.currentTarget.files?.[0])} />
    </p>
  );
}

/** Adds searches of a link or file. */
export function importSaved(found: SavedSearch[]): void {
  const { all, added } = merge(savedSearches.peek(), found);
  if (found.length === 0) toast(t('The link contains no saved searches'));
  else if (added === 0) toast(t('These searches are saved already'));
  else change(all, tn(added, '{n} search imported', '{n} searches imported'));
}

function download(all: SavedSearch[]): void {
  const a = document.createElement('a');
  a.href = URL.createObjectURL(new Blob([JSON.stringify(all, null, 1) + '\n'], { type: 'application/json' }));
  a.download = 'searches.json';
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

function Last({ onChoose }: { onChoose: (text: string) => void }) {
  const entries = readHistory();
  return (
    <section class={css.last}>
      <h2 class={css.heading}>{t('Recent searches')}</h2>
      {entries.length === 0 && <p class={css.none}>{t('No searches yet. This browser keeps the last 50.')}</p>}
      {entries.map((text) => <button key={text} type="button" data-stop class={css.text} title={text} onClick={() => onChoose(text)}><Highlight text={text} /></button>)}
    </section>
  );
}
