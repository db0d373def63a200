import { useRef, useState } from 'preact/hooks';
import type { Names } from '../../api/types';
import { classes, Input, rove } from '../../shell/controls';
import { useKeys } from '../../shell/keys';
import { ServiceMark } from '../../shell/service-mark';
import { t, tn } from '../../shell/text';
import { useRequest } from '../../shell/use-request';
import type { MapNode } from './model';
import css from './tools.module.css';

const maxFound = 10;

/** A field that finds services by a part of their names and jumps to one. */
export function FindService({ nodes, cut, onJump }: { nodes: MapNode[]; cut: boolean; onJump: (name: string) => void }) {
  const [text, setText] = useState('');
  const [active, setActive] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  useKeys(t('Map'), [{ keys: ['/'], label: t('Find a service'), run: (e) => { e.preventDefault(); input.current?.focus(); } }]);
  const more = useRequest<Names>(cut && text.trim() ? 'values' : null, { key: 'service', text: text.trim(), limit: maxFound }, { maxAge: 60_000 });
  const found = text ? matches(withNames(nodes, cut ? more.data?.names ?? [] : []), text) : [];
  const jump = (node: Found | undefined): void => {
    if (!node) return;
    setText('');
    onJump(node.name);
  };
  const key = (e: KeyboardEvent): void => {
    if (e.key === 'Enter') jump(found[active]);
    else if (e.key === 'Escape' && text) setText('');
    else if (e.key === 'ArrowDown' || e.key === 'ArrowUp') setActive(Math.max(0, rove(e.key, active, Math.min(found.length, maxFound))));
    else return;
    e.preventDefault();
  };
  return (
    <span class={css.find}>
      <Input
        icon="search" role="combobox" aria-label={t('Find a service')} placeholder={t('Find a service')} inputRef={input} value={text} aria-expanded={found.length > 0} aria-controls="map-found" aria-autocomplete="list"
        aria-activedescendant={found.length > 0 ? `map-found-${active}` : undefined} onInput={(e) => { setText(e.currentTarget.value); setActive(0); }} onKeyDown={key} onBlur={() => setText('')} after={text ? <span class={css.hint}>{tn(found.length, '{n} found', '{n} found')}</span> : <kbd class={css.key}>/</kbd>}
      />
      {found.length > 0 && (
        <ul id="map-found" role="listbox" class={css.found} aria-label={t('Services')}>
          {found.slice(0, maxFound).map((n, i) => (
            <li key={n.name} id={`map-found-${i}`} role="option" aria-selected={i === active} class={classes(css.option, i === active && css.active)} onPointerDown={(e) => { e.preventDefault(); jump(n); }}>
              <ServiceMark name={n.name} inferred={n.peer} />
            </li>
          ))}
        </ul>
      )}
    </span>
  );
}

/** What can be found: a node, or a service that the map leaves out. */
type Found = Pick<MapNode, 'name' | 'peer'>;

function withNames(nodes: MapNode[], names: string[]): Found[] {
  const known = new Set(nodes.map((n) => n.name));
  return [...nodes, ...names.filter((name) => !known.has(name)).map((name) => ({ name, peer: false }))];
}

/** Nodes with a text in their names, those that begin with it first. */
export function matches<T extends Found>(nodes: T[], text: string): T[] {
  const wanted = text.trim().toLowerCase();
  const place = (n: Found): number => n.name.toLowerCase().indexOf(wanted);
  return nodes.filter((n) => place(n) >= 0).sort((a, b) => Number(place(a) > 0) - Number(place(b) > 0) || a.name.localeCompare(b.name));
}
