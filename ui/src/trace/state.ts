// What the trace page shows. The URL holds what can be shared; this holds the rest and derives from both.

import { computed, effect, signal, type ReadonlySignal } from '@preact/signals';
import type { SpanDetail } from '../api/types';
import { cutAt, cutsOf } from '../shell/cut';
import { serviceColor, showServices } from '../shell/service-color';
import { navigate, view, type View } from '../shell/url';
import { reveal, visibleRows } from './model/rows';
import { criticalPath } from './model/path';
import { partIndex } from './model/sentence';
import { findSpan, spanID } from './model/span';
import { brokenScale, mostlyIdle, placeOf, plainScale } from './model/time-scale';
import { noRow, type CriticalPath, type FindResult, type Rows, type TraceModel, type TraceSource, type UsualTexts } from './model/types';
import { intersect } from './spans';
import { whole, type Zoom } from './timeline/zoom';

const member = <K extends keyof View>(key: K): ReadonlySignal<View[K]> => computed(() => view.value[key]);

/** Most names that are compared with each other. */
const maxCompared = 5000;

/** A request to scroll to a row. Each request is a new object. */
export interface Goal {
  /** Span, or ~group. */
  key: number;
  center: boolean;
}

/** State of a shown trace. `close` ends it. */
export class TraceState {
  /** Set once the trace is loaded; again when it grows. */
  readonly model = signal<TraceModel>(null!);
  /** Colors of the services of the model. */
  readonly colors = computed(() => this.model.value.services.map(serviceColor));
  /** Where names that are too long are cut. */
  private readonly cuts = computed(() => cutsOf(this.model.value.names.slice(0, maxCompared)));
  /** Spans (index) and groups (~index) whose fold state differs from the default. */
  readonly toggled = signal<ReadonlySet<number>>(new Set());
  /** Span, or ~group, of the row with the cursor, or null. */
  readonly active = signal<number | null>(null);
  /** Fields of the attributes that "find more like this" uses, as far as a span has them. */
  readonly alike = signal<ReadonlySet<string>>(new Set());
  /** Spans that were chosen for a pattern. */
  readonly chosen = signal<readonly number[]>([]);
  /** Result of the search in the trace, or null if there is no search. */
  readonly found = signal<FindResult | null>(null);
  /** Spans of the search that led to the trace, ascending, or null if there is none. */
  readonly marked = signal<Int32Array | null>(null);
  /** The search failed. */
  readonly findError = signal('');
  /** Pixels of the name column and of the time axis, as the waterfall has them. */
  readonly layout = signal({ names: 0, time: 0 });
  /** First and last visible row. */
  readonly visible = signal<[number, number]>([0, 0]);
  /** Span or ~group of the row at the top before the model was replaced. */
  readonly anchor: { row: number | null } = { row: null };
  /** Where the time under the pointer is written. */
  readonly cursorTime: { current: HTMLElement | null } = { current: null };
  /** What is usual for the spans, once it is known. */
  readonly usual = signal<UsualTexts | null>(null);
  /** Where to scroll. */
  readonly goal = signal<Goal | null>(null);
  /** The first rows were drawn a moment ago: the server may be asked for what is shown beside them. */
  readonly settled = signal(false);
  /** The request of `ask`, until the panel of the span takes it. */
  private asked: { id: string; spans: Promise<SpanDetail[]>; abort: AbortController } | null = null;

  private readonly broken = computed(() => brokenScale(this.model.value));
  /** Whether the trace has idle time that its axes can leave out. */
  readonly canBreak = computed(() => this.broken.value.at.length > 0);
  private readonly idle = member('idle');
  /** Whether axes leave out idle time: as the user chose, or if most of the trace is idle. */
  readonly breaks = computed(() => this.canBreak.value && (this.idle.value === '' ? this.model.value.idle > mostlyIdle * this.model.value.duration : this.idle.value === 'short'));
  /** Where times are on the axes. */
  readonly scale = computed(() => (this.breaks.value ? this.broken.value : plainScale(this.model.value.duration)));
  /** The visible part as fractions of the time of the trace, as in the URL: it means the same with and without breaks. */
  readonly zoomed = member('zoom');
  /** The visible part as fractions of the scale. */
  readonly zoom: ReadonlySignal<Zoom> = computed(() => {
    const [zoomed, scale] = [this.zoomed.value, this.scale.value];
    const place = (f: number): number => placeOf(scale, f * this.model.value.duration) / scale.length;
    return zoomed ? [place(zoomed[0]), place(zoomed[1])] : whole;
  });
  readonly tab = member('tab');
  readonly find = member('find');
  readonly search = member('search');
  readonly only = member('only');
  readonly min = member('min');
  readonly fold = member('fold');
  readonly skew = member('skew');
  readonly showPath = member('path');
  readonly pins = member('pins');
  private readonly partName = member('part');
  private readonly spanText = member('span');
  private readonly rootText = member('root');
  /** Span in the detail panel, or -1. */
  readonly selected = computed(() => (this.spanText.value ? findSpan(this.model.value, this.spanText.value) : -1));
  /** Id of a span in the URL that is not in the trace, or "". */
  readonly missingSpan = computed(() => (this.selected.value < 0 ? this.spanText.value : ''));
  /** Span that is shown as root, or -1. */
  readonly root = computed(() => (this.rootText.value ? findSpan(this.model.value, this.rootText.value) : -1));
  /** Chosen part of the sentence, or -1: only its spans are shown. */
  readonly part = computed(() => partIndex(this.model.value.sentence, this.partName.value));
  /** Spans that the user limited the rows to, or null. */
  readonly onlySpans = computed<Int32Array | null>(() => {
    const part = this.model.value.sentence[this.part.value]?.spans ?? null;
    const matches = this.only.value && this.found.value ? this.found.value.spans : null;
    return part && matches ? intersect(part, matches) : part ?? matches;
  });
  readonly options = computed(() => ({ toggled: this.toggled.value, level: this.fold.value, min: this.min.value, only: this.onlySpans.value, root: this.root.value }));
  readonly rows: ReadonlySignal<Rows> = computed(() => visibleRows(this.model.value, this.options.value));
  /** The critical path of what is shown, or null if it is switched off. */
  readonly path = computed<CriticalPath | null>(() => {
    if (!this.showPath.value) return null;
    return this.root.value >= 0 ? criticalPath(this.model.value, this.root.value) : this.model.value.path;
  });
  /** Spans that are emphasized: matches of the search. */
  readonly matches = computed(() => (this.found.value ? new Set(this.found.value.spans) : null));

  /** Spans that have a mark. */
  readonly marks = computed(() => (this.marked.value ? new Set(this.marked.value) : null));

  private readonly stops: (() => void)[] = [];

  constructor(readonly source: TraceSource, model: TraceModel) {
    this.model.value = model;
    this.stops.push(effect(() => showServices(this.model.value.services)), this.followLevel(), this.followSelection());
  }

  /** Ends the subscriptions to the URL. */
  close(): void {
    for (const stop of this.stops) stop();
    this.dropAsked();
  }

  /** Another level begins with its default fold state. */
  private followLevel(): () => void {
    let before = this.fold.peek();
    return effect(() => {
      if (this.fold.value === before) return;
      before = this.fold.value;
      this.toggled.value = new Set();
    });
  }

  /** A span of the URL is shown: at the beginning in the middle, later only if it is not visible. */
  private followSelection(): () => void {
    let before = -1;
    return effect(() => {
      const span = this.selected.value;
      const nearby = before >= 0;
      if (span >= 0 && span !== before) queueMicrotask(() => this.show(span, nearby));
      before = span;
    });
  }

  /** Index at which a name of the model can be cut, so that it differs from similar ones. */
  cut(name: string): number {
    return this.cuts.peek().get(name) ?? cutAt(name);
  }

  /** Index of the row of a span or ~group, or of the row that hides it; -1 if there is none. */
  rowIndex(key: number | null): number {
    if (key === null) return -1;
    const { row, rowOf } = this.rows.value;
    if (key < 0) return row.indexOf(key);
    const at = rowOf[key];
    return at === undefined || at === noRow ? -1 : at >= 0 ? at : -1 - at;
  }

  /** Shows a span: leaves the re-rooted part and filters that hide it, unfolds what is above it, and scrolls to it. */
  show(span: number, nearby = true): void {
    if (span < 0) return;
    const root = this.root.value;
    const { subtree } = this.model.value;
    if (root >= 0 && (span < root || span >= root + subtree[root])) navigate({ root: '', zoom: null });
    const only = this.onlySpans.value;
    if (only && this.rows.value.rowOf[span] === noRow) {
      navigate({ only: false, part: '' }, { replace: true });
    }
    if (this.model.value.end[span] - this.model.value.start[span] < this.min.value && this.rowIndex(span) < 0) navigate({ min: 0 }, { replace: true });
    if (!(this.rows.value.rowOf[span] >= 0)) this.toggled.value = reveal(this.model.value, this.options.value, span);
    this.active.value = span;
    this.goal.value = { key: span, center: !nearby };
  }

  /** Asks for a span in full, before its panel does. */
  ask(span: number): void {
    const id = spanID(this.model.value, span);
    if (this.asked?.id === id || span === this.selected.peek()) return;
    this.dropAsked();
    const abort = new AbortController();
    const asked = { id, spans: this.source.details([id], abort.signal), abort };
    asked.spans.catch(() => { if (this.asked === asked) this.asked = null; }); // the panel tries again, and shows errors
    this.asked = asked;
  }

  /** Drops the request of `ask` if its span was not opened. */
  unask(): void {
    if (this.asked?.id !== this.spanText.peek()) this.dropAsked();
  }

  private dropAsked(): void {
    this.asked?.abort.abort();
    this.asked = null;
  }

  /** A span in full: what `ask` asked for, once, otherwise a new request. */
  details(id: string, signal: AbortSignal): Promise<SpanDetail[]> {
    const { asked } = this;
    if (asked?.id !== id) return this.source.details([id], signal);
    this.asked = null;
    signal.addEventListener('abort', () => asked.abort.abort());
    return asked.spans;
  }

  /** Opens the detail panel for a span. */
  open(span: number, replace = false): void {
    this.ask(span);
    navigate({ span: spanID(this.model.value, span) }, { replace });
    this.active.value = span;
  }

  /** Takes a newer model: spans are found again by their ids. */
  replace(model: TraceModel): void {
    this.dropAsked(); // its answer can be older than the model
    const old = this.model.value;
    const again = (span: number): number => findSpan(model, spanID(old, span));
    const groupAgain = (group: number): number => {
      const first = again(old.groups.members[old.groups.offset[group]]);
      return first >= 0 ? model.groups.of[first] : -1;
    };
    const keyAgain = (key: number): number | null => {
      const index = key >= 0 ? again(key) : groupAgain(~key);
      return index < 0 ? null : key >= 0 ? index : ~index;
    };
    this.toggled.value = new Set([...this.toggled.value].map(keyAgain).filter((k) => k !== null));
    this.chosen.value = this.chosen.value.map(again).filter((s) => s >= 0);
    const active = this.active.value;
    const top = this.rows.value.row[this.visible.value[0]];
    this.anchor.row = top === undefined || this.visible.value[0] === 0 ? null : keyAgain(top);
    this.active.value = null;
    this.usual.value = null; // until it is compared with the new spans
    this.model.value = model;
    this.active.value = active === null ? null : keyAgain(active);
  }
}
