import { useEffect, useState } from 'preact/hooks';
import { theme } from '../shell/preferences';

/** Computed colours of tokens, for drawing on a canvas. `names` are without `--`. */
export function colorsOf(names: string[], at: Element): Map<string, string> {
  const probe = document.createElement('span');
  at.append(probe);
  const style = getComputedStyle(probe);
  const colors = new Map<string, string>();
  for (const name of names) {
    probe.style.color = `var(--${name})`;
    colors.set(name, style.color);
  }
  probe.remove();
  return colors;
}

/** A number that changes with the theme, so that canvases are drawn again. */
export function useThemeVersion(): string {
  const [system, setSystem] = useState(0);
  useEffect(() => {
    const media = matchMedia('(prefers-color-scheme: dark)');
    const changed = (): void => setSystem((n) => n + 1);
    media.addEventListener('change', changed);
    return () => media.removeEventListener('change', changed);
  }, []);
  return `${theme.value}-${system}`;
}
