import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { CallPaths, Explanation } from '../../../api/explain';
import { Button, classes, Segmented } from '../../../shell/controls';
import { count, duration } from '../../../shell/format';
import { serviceColor } from '../../../shell/service-color';
import { t, tn } from '../../../shell/text';
import { framesOf, neighbor, scaleOf, shadeOf, totalsOf, type Frame, type IcicleSide, type PathTimes } from './icicle-model';
import { PathTable } from './path-table';
import { callText, differenceText } from './words';
import css from './icicle.module.css';

interface IcicleProps {
  data: Explanation;
  /** The chosen call path, -1 for none. */
  path: number;
  onPath: (path: number) => void;
  /** URL of the traces with a call path. */
  href: (path: number) => string;
}

/** The critical paths of both sides as one tree: width is the time of a call path, color the change of its own time. The table has the same numbers. */
export function Icicle({ data, path, onPath, href }: IcicleProps) {
  const { paths } = data;
  const [side, setSide] = useState<IcicleSide>('difference');
  const [table, setTable] = useState(false);
  const [root, setRoot] = useState(-1);
  useLayoutEffect(() => setRoot(-1), [data]);
  const times = useMemo(() => totalsOf(paths), [paths]);
  return (
    <section aria-label={t('Time on the critical path')}>
      <div class={css.head}>
        <h2>{t('Time')}</h2>
        <span class={css.hint}>{side === 'difference' ? t('width: mean critical-path time of the selected traces; color: change in a frame\'s self time') : t('width: mean critical-path time')}</span>
        <span class={css.tools}>
          <Segmented
            label={t('Icicle shows')} value={side} onChange={setSide}
            segments={[{ value: 'difference', label: t('difference') }, { value: 'selected', label: t('selected') }, { value: 'rest', label: t('others') }]}
          />
          <Button kind="quiet" aria-pressed={table} onClick={() => setTable(!table)}>{t('Table view')}</Button>
        </span>
      </div>
      {table ? <PathTable paths={paths} times={times} href={href} /> : <>
        <Frames paths={paths} times={times} side={side} root={root} path={path} onPath={onPath} onRoot={setRoot} />
        <Detail data={data} times={times} path={path} root={root} onRoot={setRoot} href={href} />
      </>}
      {paths.omitted > 0 && <p class={css.hint}>{tn(paths.omitted, '{n} call path with less time is omitted.', '{n} call paths with less time are omitted.', { n: count(paths.omitted) })}</p>}
    </section>
  );
}

interface FramesProps {
  paths: CallPaths;
  times: PathTimes;
  side: IcicleSide;
  root: number;
  path: number;
  onPath: (path: number) => void;
  onRoot: (path: number) => void;
}

function Frames({ paths, times, side, root, path, onPath, onRoot }: FramesProps) {
  const list = useRef<HTMLDivElement>(null);
  const width = useWidth(list);
  const frames = useMemo(() => framesOf(paths, times, side, root, 3 / Math.max(width, 1)), [paths, times, side, root, width]);
  const scale = useMemo(() => scaleOf(paths, times), [paths, times]);
  const levels = frames.reduce((n, f) => Math.max(n, f.depth + 1), 1);
  const current = frames.some((f) => f.path === path) ? path : frames[0]?.path ?? -1;
  const key = (e: KeyboardEvent): void => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) return;
    if (e.key === 'Enter' || e.key === ' ') onRoot(root === current ? -1 : current);
    else if (e.key === 'Escape' && root >= 0) onRoot(-1);
    else {
      const next = neighbor(frames, paths, current, e.key);
      if (next < 0) return;
      onPath(next);
      list.current!.querySelector<HTMLElement>(`[data-path="${next}"]`)?.focus();
    }
    e.preventDefault();
    e.stopPropagation();
  };
  const empty = frames.length === 0 && width > 0;
  return (
    <div class={css.scroll}>
      {empty && <p class={css.none}>{side === 'rest' ? t('The others have no time on a critical path.') : t('The selected traces have no time on a critical path.')}</p>}
      <div
        ref={list} class={css.frames} hidden={empty} role="tree" aria-label={t('Call paths by time. Arrow keys move, Enter enlarges a frame, Escape shows all. Table view has the same numbers.')}
        style={{ height: `calc(var(--frame-h) * ${levels})` }} onKeyDown={key}
      >
        {frames.map((f) => (
          <FrameView
            key={f.path} frame={f} paths={paths} times={times} side={side} scale={scale} width={width} chosen={f.path === path} focusable={f.path === current}
            onChoose={() => (f.path === path ? onRoot(root === f.path ? -1 : f.path) : onPath(f.path))}
          />
        ))}
      </div>
    </div>
  );
}

interface FrameViewProps {
  frame: Frame;
  paths: CallPaths;
  times: PathTimes;
  side: IcicleSide;
  scale: number;
  width: number;
  chosen: boolean;
  focusable: boolean;
  onChoose: () => void;
}

/** Classes of the shades from -4 to 4. */
const shades = [css.less4, css.less3, css.less2, css.less1, '', css.more1, css.more2, css.more3, css.more4];

function FrameView({ frame, paths, times, side, scale, width, chosen, focusable, onChoose }: FrameViewProps) {
  const { path } = frame;
  const difference = times.selected[path] - times.rest[path];
  const shade = side === 'difference' ? shadeOf(paths.selected.self[path] - paths.rest.self[path], scale) : 0;
  const px = frame.width * width;
  const text = side === 'difference' ? differenceText(difference) : duration(Math.round(times[side][path]));
  const name = `${paths.service[path]} ${callText(paths, path)}`;
  return (
    <div
      role="treeitem" aria-level={frame.depth + 1} aria-selected={chosen} aria-label={`${name}, ${text}`} data-path={path} tabIndex={focusable ? 0 : -1} title={`${name}\n${text}`}
      class={classes(css.frame, shades[shade + 4], side !== 'difference' && css.alone, chosen && css.chosen)}
      style={{ left: `${frame.x * 100}%`, top: `calc(var(--frame-h) * ${frame.depth})`, width: `calc(${frame.width * 100}% - 1px)`, '--c': serviceColor(paths.service[path]) }}
      onClick={onChoose}
    >
      {px > 40 && <span class={css.name}>{px > 150 && <b>{paths.service[path]} </b>}{callText(paths, path)}</span>}
      {px > 190 && <span class={css.change}>{text}</span>}
    </div>
  );
}

/** The numbers of the chosen frame, and what can be done with it. */
function Detail({ data, times, path, root, onRoot, href }: { data: Explanation; times: PathTimes; path: number; root: number; onRoot: (path: number) => void; href: (path: number) => string }) {
  const { paths } = data;
  if (path < 0) return <p class={css.detail}>{root >= 0 ? <Button kind="quiet" onClick={() => onRoot(-1)}>{t('Show all')}</Button> : t('Select a frame to see its numbers.')}</p>;
  const own = paths.selected.self[path] - paths.rest.self[path];
  return (
    <p class={css.detail} aria-live="polite">
      <b>{paths.service[path]}</b> <span>{callText(paths, path)}</span>
      <span>{t('selected {selected}, others {others}', { selected: duration(Math.round(times.selected[path])), others: duration(Math.round(times.rest[path])) })}</span>
      <span>{t('self time {change}', { change: differenceText(own) })}</span>
      <a href={href(path)}>{t('Show traces')}</a>
      <Button kind="quiet" onClick={() => onRoot(root === path ? -1 : path)}>{root === path ? t('Show all') : t('Enlarge')}</Button>
    </p>
  );
}

function useWidth(ref: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!ref.current) return;
    const measure = (): void => setWidth(ref.current?.clientWidth ?? 0);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return width;
}
