import { useRef, useState } from 'preact/hooks';
import { classes, Input, rove } from '../../shell/controls';
import { useKeys } from '../../shell/keys';
import { ServiceMark } from '../../shell/service-mark';
import { t, tn } from '../../shell/text';
import type { MapNode } from './model';
import css from './tools.module.css';

const maxFound = 10;

/** A field that finds services by a part of their names and jumps to one. */
export function FindService({ nodes, onJump }: { nodes: MapNode[]; onJump: (name: string) => void }) {
  const [text, setText] = useState('');
  const [active, setActive] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  useKeys(t('Map'), [{ keys: ['/'], label: t('Find a service'), run: (e) => { e.preventDefault(); input.current?.focus(); } }]);
  const found = text ? matches(nodes, text) : [];
  const jump = (node: MapNode | undefined): void => {
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

/** Nodes with a text in their names, those that begin with it first. */
export function matches(nodes: MapNode[], text: string): MapNode[] {
  const wanted = text.trim().toLowerCase();
  const place = (n: MapNode): number => n.name.toLowerCase().indexOf(wanted);
  return nodes.filter((n) => place(n) >= 0).sort((a, b) => Number(place(a) > 0) - Number(place(b) > 0) || a.name.localeCompare(b.name));
}
