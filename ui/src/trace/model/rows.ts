// The visible rows of a trace: folding, groups of siblings, filters.

import { fold, noRow, type RowOptions, type Rows, type TraceModel } from './types';

/** Number of rows above which short spans are folded by default, and their maximum share of the trace. */
export const manyRows = 5000;
export const shortShare = 0.001;

/** What the rows depend on. */
export type Folding = Pick<TraceModel, 'spans' | 'parent' | 'subtree' | 'start' | 'end' | 'duration' | 'groups'>;

/** The options of a trace that was just opened. */
export const defaultRows: RowOptions = { toggled: new Set(), level: -1, min: 0, only: null, root: -1 };

/** Lists the visible rows. */
export function visibleRows(m: Folding, options: RowOptions): Rows {
  const foldedBelow = defaultFold(m, options);
  const builder = new Builder(m, options, foldedBelow, filter(m, options));
  builder.run();
  return builder.finish();
}

/** Minimum duration of spans that are unfolded by default, 0 if all are. It does not depend on what the user has toggled. */
function defaultFold(m: Folding, o: RowOptions): number {
  if (o.level >= 0 || o.only || m.spans <= manyRows) return 0;
  const key = `${o.min} ${o.root}`;
  const known = defaults.get(m);
  if (known?.key === key) return known.value;
  const builder = new Builder(m, { ...o, toggled: new Set() }, 0, filter(m, o));
  builder.run();
  const value = builder.count > manyRows ? shortShare * m.duration : 0;
  defaults.set(m, { key, value });
  return value;
}

/** The last result for each model, so that folding a span lists the rows once. */
const defaults = new WeakMap<Folding, { key: string; value: number }>();

/** 1 for each span that is shown or has a shown descendant; null for all. */
function filter(m: Folding, o: RowOptions): Uint8Array | null {
  if (!o.only && !(o.min > 0)) return null;
  const shown = new Uint8Array(m.spans);
  if (o.only) for (const s of o.only) shown[s] = 1;
  else shown.fill(1);
  for (let i = m.spans - 1; i >= 0; i--) {
    const below = shown[i] === 2;
    if (!below && o.min > 0 && m.end[i] - m.start[i] < o.min) shown[i] = 0;
    if (shown[i] && m.parent[i] >= 0) shown[m.parent[i]] = 2;
  }
  return shown;
}

/** Whether a span is folded if the user has not toggled it. */
function foldedByDefault(m: Folding, o: RowOptions, foldedBelow: number, span: number, level: number): boolean {
  if (o.level >= 0) return level >= o.level;
  return foldedBelow > 0 && extents(m)[span] < foldedBelow;
}

/** Nanoseconds from the start of each span to the end of the last span below it: children can take longer than their parents. */
function extents(m: Folding): Float64Array {
  const known = extentsOf.get(m);
  if (known) return known;
  const end = Float64Array.from(m.end);
  for (let i = m.spans - 1; i >= 0; i--) if (m.parent[i] >= 0) end[m.parent[i]] = Math.max(end[m.parent[i]], end[i]);
  const extent = end.map((e, i) => e - m.start[i]);
  extentsOf.set(m, extent);
  return extent;
}

const extentsOf = new WeakMap<Folding, Float64Array>();

/** Whether a group is open if the user has not toggled it: if it has all spans below the only root, there is nothing else to see. */
function openByDefault(m: Folding, group: number): boolean {
  const { members, offset } = m.groups;
  if (members[offset[group]] !== 1 || m.parent[1] !== 0) return false;
  let below = 0;
  for (let k = offset[group]; k < offset[group + 1]; k++) below += m.subtree[members[k]];
  return below === m.spans - 1;
}

/** Siblings that are still to list: from `next` to before `last`, or the members of a group. */
interface Siblings {
  next: number;
  last: number;
  level: number;
  /** Row of the parent, or -1. */
  above: number;
  /** Group whose members these are, or -1. `next` and `last` are then positions in its list. */
  group: number;
}

class Builder {
  count = 0;
  private readonly row: Int32Array;
  private readonly level: Int32Array;
  private readonly fold: Uint8Array;
  private readonly hidden: Int32Array;
  private readonly rowOf: Int32Array;
  private readonly stack: Siblings[] = [];
  private readonly listed: Uint8Array; // by group

  constructor(private readonly m: Folding, private readonly o: RowOptions, private readonly foldedBelow: number, private readonly shown: Uint8Array | null) {
    const size = m.spans + m.groups.sum.length;
    this.row = new Int32Array(size);
    this.level = new Int32Array(size);
    this.fold = new Uint8Array(size);
    this.hidden = new Int32Array(size);
    this.rowOf = new Int32Array(m.spans).fill(noRow);
    this.listed = new Uint8Array(m.groups.sum.length);
  }

  /** Lists all rows. It does not recurse, because traces can be deep. */
  run(): void {
    const { root } = this.o;
    if (root >= 0 && root < this.m.spans) this.addSpan(root, 0, -1);
    else this.stack.push({ next: 0, last: this.m.spans, level: 0, above: -1, group: -1 });
    while (this.stack.length > 0) {
      const top = this.stack[this.stack.length - 1];
      if (top.next >= top.last) this.stack.pop();
      else this.step(top);
    }
  }

  private step(s: Siblings): void {
    if (s.group >= 0) {
      this.addSpan(this.m.groups.members[s.next++], s.level, s.above);
      return;
    }
    const span = s.next;
    s.next += this.m.subtree[span];
    const group = this.o.only ? -1 : this.m.groups.of[span];
    if (group < 0) this.addSpan(span, s.level, s.above);
    else if (!this.listed[group]) this.addGroup(group, s.level, s.above);
  }

  private addSpan(span: number, level: number, above: number): void {
    const size = this.m.subtree[span];
    if (this.shown && !this.shown[span]) {
      this.hide(span, above);
      return;
    }
    const at = this.push(span, level);
    this.rowOf[span] = at;
    if (size === 1) return;
    const folded = foldedByDefault(this.m, this.o, this.foldedBelow, span, level) !== this.o.toggled.has(span);
    this.fold[at] = folded ? fold.folded : fold.open;
    if (!folded) {
      this.stack.push({ next: span + 1, last: span + size, level: level + 1, above: at, group: -1 });
      return;
    }
    this.hidden[at] = size - 1;
    this.rowOf.fill(-1 - at, span + 1, span + size);
  }

  /** Lists a group, where its first member is. If it is folded, its members are hidden by its row. */
  private addGroup(group: number, level: number, above: number): void {
    const { members, offset } = this.m.groups;
    this.listed[group] = 1;
    if (this.shown && !this.anyShown(group)) {
      for (let k = offset[group]; k < offset[group + 1]; k++) this.hide(members[k], above);
      return;
    }
    const at = this.push(~group, level);
    const open = openByDefault(this.m, group) !== this.o.toggled.has(~group);
    this.fold[at] = open ? fold.open : fold.folded;
    if (open) this.stack.push({ next: offset[group], last: offset[group + 1], level: level + 1, above: at, group });
    else for (let k = offset[group]; k < offset[group + 1]; k++) this.hide(members[k], at);
  }

  private anyShown(group: number): boolean {
    const { members, offset } = this.m.groups;
    for (let k = offset[group]; k < offset[group + 1]; k++) if (this.shown![members[k]]) return true;
    return false;
  }

  private hide(span: number, above: number): void {
    const size = this.m.subtree[span];
    if (above < 0) return;
    this.hidden[above] += size;
    this.rowOf.fill(-1 - above, span, span + size);
  }

  private push(row: number, level: number): number {
    this.row[this.count] = row;
    this.level[this.count] = level;
    return this.count++;
  }

  finish(): Rows {
    const cut = <T extends Int32Array | Uint8Array>(a: T): T => a.subarray(0, this.count) as T;
    return { row: cut(this.row), level: cut(this.level), fold: cut(this.fold), hidden: cut(this.hidden), rowOf: this.rowOf, foldedBelow: this.foldedBelow };
  }
}

/** The `toggled` with which a span has a row: what folds it is unfolded. Filters still apply. */
export function reveal(m: Folding, options: RowOptions, span: number): Set<number> {
  const foldedBelow = defaultFold(m, options);
  const toggled = new Set(options.toggled);
  for (const { at, level } of ancestorRows(m, options, span)) {
    const folded = at < 0 ? !openByDefault(m, ~at) : foldedByDefault(m, options, foldedBelow, at, level);
    if (folded) toggled.add(at);
    else toggled.delete(at);
  }
  return toggled;
}

/** Ancestors and groups that contain the row of a span, from the top, with their levels. Nothing if the span is outside the root. */
function ancestorRows(m: Folding, o: RowOptions, span: number): { at: number; level: number }[] {
  const chain: number[] = [];
  let s = span;
  for (; s >= 0 && s !== o.root; s = m.parent[s]) {
    const group = o.only ? -1 : m.groups.of[s];
    if (group >= 0) chain.push(~group);
    if (m.parent[s] >= 0) chain.push(m.parent[s]);
  }
  if (o.root >= 0 && s < 0) return [];
  return chain.reverse().map((at, level) => ({ at, level }));
}

/** Row of a span, or of what hides it; -1 if no row contains it. */
export function rowOfSpan(rows: Rows, span: number): number {
  const r = rows.rowOf[span] ?? noRow;
  if (r === noRow) return -1;
  return r >= 0 ? r : -1 - r;
}
