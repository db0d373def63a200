import type { ComponentChildren } from 'preact';
import { Button, Segmented } from '../../shell/controls';
import { count, none, percentile, rate, share } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { serviceLabel } from '../../shell/service';
import { ServiceSwatch } from '../../shell/service-mark';
import { Partial } from '../../shell/states';
import { t, tn } from '../../shell/text';
import { link } from '../../shell/url';
import { connectionNames, EdgeTable } from './edge-table';
import { isFailing, isSlow, type Graph, type MapEdge, type MapNode } from './model';
import type { Picture } from './picture';
import { edgeQuery, serviceQuery, slowest } from './queries';
import { callerSentence, mapSentence } from './sentence';
import css from './side.module.css';

/** Properties of Side. */
export interface SideProps {
  picture: Picture;
  /** The whole map. */
  all: Graph;
  focus: string;
  pick: string[];
  sort: string;
  /** Whether the table has only the edges of the selected service. */
  only: boolean;
  onOnly: (only: boolean) => void;
  onSort: (sort: string) => void;
  onPick: (names: string[]) => void;
  onFocus: (name: string) => void;
  onOpen: (group: string) => void;
}

/** The answer in words, what is selected, and the table of edges. */
export function Side(props: SideProps) {
  const { picture, all, pick, focus } = props;
  const name = pick.length === 1 ? pick[0] : pick.length === 0 ? focus : '';
  const node = picture.graph.nodes.find((n) => n.name === name) ?? all.nodes.find((n) => n.name === name);
  const own = node && edgesOf(picture.table, node);
  const table = props.only && own ? { ...picture.table, edges: own } : picture.table;
  return (
    <aside class={css.side} aria-label={t('Services and edges')}>
      <div class={css.head}>
        {pick.length === 2 ? <EdgeHead {...props} /> : node ? <NodeHead {...props} node={node} /> : <h1 class={css.sentence}>{mapSentence(picture.table)}</h1>}
        {node && own && (
          <div class={css.choice}>
            <Segmented label={t('Edges')} value={props.only ? 'own' : 'all'} segments={[{ value: 'all', label: t('All edges {n}', { n: count(picture.table.edges.length) }) }, { value: 'own', label: t('Of {name} {n}', { name: node.name, n: count(own.length) }) }]} onChange={(v) => props.onOnly(v === 'own')} />
          </div>
        )}
      </div>
      <div class={css.list}>
        <EdgeTable graph={table} sort={props.sort} pick={pick} onSort={props.onSort} onPick={props.onPick} />
        <Alone nodes={picture.alone} />
      </div>
    </aside>
  );
}

/** The edges of a node, or of the members of a group. */
function edgesOf(g: Graph, node: MapNode): MapEdge[] {
  const names = new Set(node.members ?? [node.name]);
  return g.edges.filter((e) => names.has(g.nodes[e.from].name) || names.has(g.nodes[e.to].name));
}

function Heading({ name, peer, note, children }: { name: string; peer: boolean; note: string; children?: ComponentChildren }) {
  return <div class={css.title}><ServiceSwatch name={name} inferred={peer} /><h1 class={css.name} title={name}>{serviceLabel(name)}</h1><span class={css.note}>{note}</span><span class={css.grow} />{children}</div>;
}

function NodeHead({ node, picture, focus, onFocus, onOpen, onPick }: SideProps & { node: MapNode }) {
  const note = node.name === focus ? t('focus of the map') : node.members ? tn(node.members.length, 'group of {n} service', 'group of {n} services') : node.peer ? t('sends no spans') : '';
  const bad = isFailing(node, node.requests);
  return (
    <>
      <Heading name={node.name} peer={node.peer} note={note}>
        {node.members ? <Button onClick={() => onOpen(node.name)}>{t('Open group')}</Button> : node.name !== focus && <Button onClick={() => onFocus(node.name)}>{t('Focus')}</Button>}
        {!node.peer && !node.members && <a class={css.open} href={link({ page: 'service', name: node.name })}>{t('Open service')}</a>}
      </Heading>
      <p class={css.facts}>
        <span><b>{rate(node.requests / picture.graph.seconds)}</b> {t('requests/s')}</span>
        <span class={bad ? css.bad : undefined}>{bad && <Mark kind="error" size={12} label="" />} <b>{share(node.errors / Math.max(1, node.requests))}</b> {t('errors')}</span>
        <span>p95 <b>{node.p95 === null ? none : percentile(node.p95)}</b></span>
      </p>
      {!node.members && <p class={css.answer}>{callerSentence(picture.table, node)}</p>}
      {node.members && <p class={css.members}>{node.members.slice(0, 12).map((m) => <button key={m} type="button" class={css.member} onClick={() => onPick([m])}>{m}</button>)}{node.members.length > 12 && <span>{t('and {n} more', { n: count(node.members.length - 12) })}</span>}</p>}
      {!node.peer && !node.members && <p class={css.links}><a href={link({ page: 'explore' }, { q: serviceQuery(node.name) })}>{t('Traces')}</a>{node.errors > 0 && <a href={link({ page: 'explore' }, { q: serviceQuery(node.name, 'error') })}>{t('Failing traces')}</a>}</p>}
    </>
  );
}

function EdgeHead({ picture, all, pick, onPick }: SideProps) {
  const find = (g: Graph): MapEdge | undefined => g.edges.find((e) => g.nodes[e.from].name === pick[0] && g.nodes[e.to].name === pick[1]);
  const g = find(picture.graph) ? picture.graph : all;
  const e = find(g);
  if (!e) return <p class={css.answer}>{t('There are no calls from {from} to {to} in this time range.', { from: pick[0], to: pick[1] })}</p>;
  const [from, to] = [g.nodes[e.from], g.nodes[e.to]];
  const bad = isFailing(e, e.calls);
  return (
    <>
      <div class={css.title}>
        <h1 class={css.name}><button type="button" class={css.member} onClick={() => onPick([from.name])}>{serviceLabel(from.name)}</button> › <button type="button" class={css.member} onClick={() => onPick([to.name])}>{serviceLabel(to.name)}</button></h1>
        <span class={css.grow} /><Button kind="quiet" icon="x" label={t('Close')} onClick={() => onPick([])} />
      </div>
      <p class={css.facts}>
        <span><b>{rate(e.calls / g.seconds)}</b> {t('requests/s')}</span>
        <span class={bad ? css.bad : undefined}>{bad && <Mark kind="error" size={12} label="" />} <b>{share(e.errors / e.calls)}</b> {t('errors')}</span>
        <span>p50 <b>{e.p50 === null ? none : percentile(e.p50)}</b></span>
        <span class={isSlow(e) ? css.slow : undefined}>p95 <b>{isSlow(e) ? '▲ ' : ''}{e.p95 === null ? none : percentile(e.p95)}</b>{e.usual !== null && <> {t('usually {usual}', { usual: percentile(e.usual) })}</>}</span>
        {e.connections.length > 0 && <span>{e.connections.map((c) => connectionNames[c]).join(', ')}</span>}
        <span>{tn(e.calls, '{n} call, {failed} failed', '{n} calls, {failed} failed', { n: count(e.calls), failed: count(e.errors) })}</span>
      </p>
      {e.edges > 1 && <p class={css.answer}>{t('{n} edges between groups; p95 is from the slowest one.', { n: count(e.edges) })}</p>}
      {e.timed < e.calls && e.timed > 0 && <Partial>{t('Durations cover {timed} calls; older calls were not measured.', { timed: count(e.timed) })}</Partial>}
      {!from.members && !to.members && (
        <p class={css.links}>
          <a href={link({ page: 'explore' }, { q: edgeQuery(from, to) })}>{t('Traces with this call')}</a>
          {e.errors > 0 && <a href={link({ page: 'explore' }, { q: edgeQuery(from, to, 'error') })}>{t('Failing traces')}</a>}
          {e.p95 !== null && <a href={link({ page: 'explore' }, { q: edgeQuery(from, to, slowest(e)) })}>{t('Slowest 5 %')}</a>}
        </p>
      )}
    </>
  );
}

/** Services that are not in the drawing because no edge leads to them. */
function Alone({ nodes }: { nodes: MapNode[] }) {
  if (nodes.length === 0) return null;
  return (
    <details class={css.alone}>
      <summary>{tn(nodes.length, '{n} service without calls', '{n} services without calls', { n: count(nodes.length) })}</summary>
      <p>{nodes.map((n) => n.name).join(', ')}</p>
    </details>
  );
}
