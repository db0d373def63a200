import { useEffect, useRef } from 'preact/hooks';
import { theme } from '../shell/preferences';
import { serviceColor, serviceSteps } from '../shell/service-color';
import { t } from '../shell/text';
import { pathStrip } from '../trace/model/path';
import { sentenceText } from '../trace/model/sentence';
import type { TraceModel } from '../trace/model/types';
import { useMedia, useSize } from '../shell/use-size';
import css from './compare.module.css';

const height = 12;

/** The critical path of a trace on a scale on which `longest` nanoseconds are the whole width. */
export function Strip({ model, longest }: { model: TraceModel; longest: number }) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width } = useSize(box);
  const dark = useMedia('(prefers-color-scheme: dark)');
  const chosen = theme.value;
  const steps = serviceSteps.value;
  const used = Math.max(1, Math.round((width * model.duration) / Math.max(1, longest)));
  useEffect(() => { if (width > 0 && canvas.current) draw(canvas.current, model, used); }, [model, used, width, dark, chosen, steps]);
  return <div ref={box} class={css.strip}><canvas ref={canvas} role="img" aria-label={t('Critical path of {text}', { text: sentenceText(model) })} /></div>;
}

function draw(canvas: HTMLCanvasElement, model: TraceModel, width: number): void {
  const scale = Math.min(2, devicePixelRatio || 1);
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.width = `${width}px`;
  const g = canvas.getContext('2d')!;
  g.scale(scale, scale);
  const probe = document.createElement('span');
  canvas.parentElement!.append(probe);
  const resolve = (color: string): string => {
    probe.style.color = color;
    return getComputedStyle(probe).color;
  };
  const colors = model.services.map((s) => resolve(serviceColor(s)));
  const gap = resolve('var(--text-3)');
  probe.remove();
  const strip = pathStrip(model, width);
  for (let x = 0; x < width; x++) {
    g.fillStyle = strip.gap[x] ? gap : colors[strip.service[x]] ?? 'transparent';
    if (!strip.gap[x]) g.fillRect(x, 0, 1, height);
    else for (let y = 0; y < height; y++) if ((x + y) % 5 === 0) g.fillRect(x, y, 1, 1);
  }
}
