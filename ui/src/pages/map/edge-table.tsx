import { useMemo, useRef, useState } from 'preact/hooks';
import type { Connection } from '../../api/map';
import { Button, classes } from '../../shell/controls';
import { count, none, percentile, rate, share, short } from '../../shell/format';
import { Mark } from '../../shell/icons';
import { useRovingRows } from '../../shell/roving';
import { ServiceMark } from '../../shell/service-mark';
import { t } from '../../shell/text';
import { isFailing, isSlow, type Graph, type MapEdge } from './model';
import css from './edge-table.module.css';

/** Rows that are drawn at first, and with each press of the button. */
const rowsPerStep = 100;

type Column = 'edge' | 'type' | 'requests' | 'calls' | 'errors' | 'p95';

const columns: [Column, string, string][] = [['edge', t('Edge'), css.edge], ['type', t('Type'), css.type], ['requests', t('Requests/s'), css.requests], ['calls', t('Calls'), css.calls], ['errors', t('Errors'), css.errors], ['p95', 'p95', css.p95]];

/** Names of types of connections. */
export const connectionNames: Record<Connection, string> = { '': none, database: t('database'), messaging: t('messages'), grpc: 'gRPC', rpc: 'RPC', http: 'HTTP' };

/** The twin of the drawing: all its edges. `sort` is a column, with a minus if it descends. */
export function EdgeTable({ graph, sort, pick, onSort, onPick }: { graph: Graph; sort: string; pick: string[]; onSort: (sort: string) => void; onPick: (names: string[]) => void }) {
  const [rows, setRows] = useState(rowsPerStep);
  const body = useRef<HTMLTableElement>(null);
  useRovingRows(body);
  const [column, descending] = orderOf(sort);
  const sorted = useMemo(() => sortEdges(graph, column, descending), [graph, column, descending]);
  const choose = (c: Column): void => onSort(c === column ? (descending ? c : '-' + c) : c === 'edge' || c === 'type' ? c : '-' + c);
  return (
    <>
      <table ref={body} class={css.table} role="grid" aria-label={t('Edges')} aria-rowcount={sorted.length + 1}>
        <thead>
          <tr>
            {columns.map(([c, label, kind]) => (
              <th key={c} scope="col" class={classes(c !== 'edge' && c !== 'type' && css.number, kind)} aria-sort={c === column ? (descending ? 'descending' : 'ascending') : undefined}>
                <button type="button" class={css.sort} onClick={() => choose(c)}>{label}{c === column && <span aria-hidden="true"> {descending ? '↓' : '↑'}</span>}</button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{sorted.slice(0, rows).map((e) => <Row key={`${e.from}>${e.to}`} graph={graph} e={e} pick={pick} onPick={onPick} />)}</tbody>
      </table>
      {sorted.length > rows && <p class={css.more}><span>{t('{shown} of {all} edges', { shown: count(rows), all: count(sorted.length) })}</span> <Button kind="quiet" onClick={() => setRows(rows + rowsPerStep)}>{t('Show more')}</Button></p>}
    </>
  );
}

function Row({ graph, e, pick, onPick }: { graph: Graph; e: MapEdge; pick: string[]; onPick: (names: string[]) => void }) {
  const [from, to] = [graph.nodes[e.from], graph.nodes[e.to]];
  const bad = isFailing(e, e.calls);
  const chosen = pick.length === 2 && pick[0] === from.name && pick[1] === to.name;
  const types = e.connections.map((c) => connectionNames[c]).join(', ');
  return (
    <tr data-row class={classes(css.row, chosen && css.chosen)} aria-selected={chosen}>
      <td class={css.edge}>
        <button type="button" class={css.ends} onClick={() => onPick([from.name, to.name])} title={`${from.name} › ${to.name}`}>
          <ServiceMark name={from.name} inferred={from.peer} /><span class={css.arrow}>›</span><ServiceMark name={to.name} inferred={to.peer} />
        </button>
      </td>
      <td class={css.type} title={types}>{types || none}</td>
      <td class={css.number}>{rate(e.calls / graph.seconds)}</td>
      <td class={css.number} title={count(e.calls)}>{short(e.calls)}</td>
      <td class={classes(css.number, bad && css.bad, e.errors === 0 && css.zero)} title={t('{failed} of {calls} failed', { failed: count(e.errors), calls: count(e.calls) })}>{bad && <Mark kind="error" size={11} label="" />}{e.errors > 0 && <span class={css.many}>{short(e.errors)}</span>}{share(e.errors / e.calls)}</td>
      <td class={classes(css.number, isSlow(e) && css.slow)}>{e.p95 === null ? none : `${isSlow(e) ? '▲ ' : ''}${percentile(e.p95)}`}</td>
    </tr>
  );
}

/** Column and direction of `sort`; most errors come first by default. */
export function orderOf(sort: string): [Column, boolean] {
  const name = sort.replace(/^-/, '');
  const known = columns.some(([c]) => c === name);
  return known ? [name as Column, sort.startsWith('-')] : ['errors', true];
}

/** Edges in the order of a column; of equal ones, those with the most calls come first. */
export function sortEdges(g: Graph, column: Column, descending: boolean): MapEdge[] {
  const name = (e: MapEdge): string => `${g.nodes[e.from].name}\n${g.nodes[e.to].name}`;
  const compare: Record<Column, (a: MapEdge, b: MapEdge) => number> = {
    edge: (a, b) => name(a).localeCompare(name(b)),
    type: (a, b) => (a.connections[0] ?? '~').localeCompare(b.connections[0] ?? '~'),
    requests: (a, b) => a.calls - b.calls,
    calls: (a, b) => a.calls - b.calls,
    errors: (a, b) => a.errors / a.calls - b.errors / b.calls,
    p95: (a, b) => (a.p95 ?? -1) - (b.p95 ?? -1),
  };
  return [...g.edges].sort((a, b) => (descending ? compare[column](b, a) : compare[column](a, b)) || b.calls - a.calls);
}
