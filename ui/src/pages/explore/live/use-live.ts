import { useEffect, useRef, useState } from 'preact/hooks';
import { get } from '../../../api/client';
import type { TailStatus } from '../../../api/tail';
import type { Heatmap } from '../../../api/types';
import { capable } from '../../../shell/config';
import { Feed, type Connection } from './feed';
import { LiveHeat } from './heat';
import { addRow, noRows, releaseRows, type LiveRows } from './rows';

/** What the live view shows. */
export interface LiveState {
  connection: Connection;
  status: TailStatus | null;
  rows: LiveRows;
  /** Null until the first frame. */
  heat: Heatmap | null;
  retry: () => void;
}

/** What stays as it is while the user looks at it. */
export interface Hold {
  rows: boolean;
  heat: boolean;
}

/** Milliseconds until the heatmap is drawn again: rows come more often. */
const heatEvery = 1000;

/** Everything that the events change. It is drawn at most once for each frame. */
class Model {
  connection: Connection = { state: 'connecting' };
  status: TailStatus | null = null;
  rows = noRows;
  readonly heat = new LiveHeat();
  hold: Hold = { rows: false, heat: false };
}

/** Follows the traces that match a search, as they arrive. */
export function useLive(q: string, hold: Hold): LiveState {
  const [model, setModel] = useState(() => new Model());
  const [, drawAgain] = useState(0);
  const feed = useRef<Feed | null>(null);
  const drawn = useRef<{ at: number; heat: Heatmap } | null>(null);
  useEffect(() => {
    const m = new Model();
    setModel(m);
    drawn.current = null;
    return follow(q, m, feed, () => drawAgain((n) => n + 1));
  }, [q]);
  model.hold = hold;
  if (!hold.rows) model.rows = releaseRows(model.rows);
  const now = Date.now();
  if (!drawn.current || (!hold.heat && now - drawn.current.at >= heatEvery)) drawn.current = { at: now, heat: model.heat.at(now) };
  return { connection: model.connection, status: model.status, rows: model.rows, heat: drawn.current.heat, retry: () => feed.current?.retry() };
}

function follow(q: string, m: Model, feed: { current: Feed | null }, draw: () => void): () => void {
  let frame = 0;
  const changed = (): void => { frame ||= requestAnimationFrame(() => { frame = 0; draw(); }); };
  const abort = new AbortController();
  const own = new Feed(q, {
    trace: (t) => {
      m.heat.add(t, m.status?.oneIn ?? 1);
      m.rows = addRow(m.rows, t, m.hold.rows);
      changed();
    },
    status: (s) => { m.status = s; changed(); },
    connection: (c) => { m.connection = c; changed(); },
  });
  feed.current = own;
  if (capable('aggregates')) {
    get<Heatmap>('heatmap', { q, of: 'traces', exemplars: 1, ...LiveHeat.window(Date.now()) }, { signal: abort.signal })
      .then(({ data }) => { m.heat.seed(data); changed(); }, () => {}); // the time before stays empty
  }
  // The time moves on also without traces.
  const timer = setInterval(() => { if (!document.hidden) changed(); }, heatEvery);
  return () => {
    clearInterval(timer);
    cancelAnimationFrame(frame);
    abort.abort();
    own.close();
  };
}
