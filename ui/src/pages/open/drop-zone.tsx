import { useEffect, useRef, useState } from 'preact/hooks';
import { Button, classes } from '../../shell/controls';
import { bytes } from '../../shell/format';
import { t } from '../../shell/text';
import { maxFileSize } from '../../trace/files/limits';
import { closeAll, read, reading } from './files';
import css from './open.module.css';

/** Takes files: chosen, dropped anywhere on the page, or pasted. */
export function DropZone({ small }: { small: boolean }) {
  const input = useRef<HTMLInputElement>(null);
  const over = useDrop();
  const busy = reading.value > 0;
  return (
    <div class={classes(css.zone, small && css.small, over && css.over)}>
      <input
        ref={input} class={css.file} type="file" multiple tabIndex={-1} aria-hidden="true"
        onChange={(e) => {
          void readAll(e.currentTarget.files);
          e.currentTarget.value = ''; // the same file can be chosen again
        }}
      />
      <Button kind={small ? 'default' : 'primary'} icon={small ? 'plus' : undefined} disabled={busy} onClick={() => input.current?.click()}>{busy ? t('Reading') : small ? t('Open more files') : t('Choose files')}</Button>
      <p class={css.hint}>{over ? t('Drop to open.') : small ? t('or drop or paste them') : <>{t('or drop them here, or paste JSON with')}{' '}<kbd>{t('Ctrl')} V</kbd></>}</p>
      {!small && <p class={css.formats}>{t('JSON of Jaeger, OTLP or Zipkin, also compressed with gzip; at most {maxFileSize} for each file', { maxFileSize: bytes(maxFileSize) })}</p>}
      {small && <Button kind="quiet" class={css.close} onClick={closeAll}>{t('Close all files')}</Button>}
    </div>
  );
}

/** Reads files that are dropped on the page or pasted. Returns whether files are held over the page. */
function useDrop(): boolean {
  const [over, setOver] = useState(false);
  useEffect(() => {
    const drag = (e: DragEvent): void => {
      if (!e.dataTransfer?.types.includes('Files')) return;
      e.preventDefault();
      setOver(true);
    };
    const leave = (e: DragEvent): void => { if (!e.relatedTarget) setOver(false); };
    const drop = (e: DragEvent): void => {
      if (!e.dataTransfer?.types.includes('Files')) return;
      e.preventDefault();
      setOver(false);
      void readAll(e.dataTransfer.files);
    };
    const handlers = { dragover: drag, dragleave: leave, drop, paste } as Record<string, (e: never) => void>;
    for (const [name, f] of Object.entries(handlers)) document.addEventListener(name, f as EventListener);
    return () => { for (const [name, f] of Object.entries(handlers)) document.removeEventListener(name, f as EventListener); };
  }, []);
  return over;
}

/** Pasted files, or pasted text, unless the user pastes into a field. */
function paste(e: ClipboardEvent): void {
  if ((e.target as Element | null)?.closest?.('input, textarea, [contenteditable]') || !e.clipboardData) return;
  const text = e.clipboardData.getData('text/plain');
  if (e.clipboardData.files.length > 0) void readAll(e.clipboardData.files);
  else if (text.trim()) void read([{ name: t('pasted text'), blob: new Blob([text]) }]);
}

function readAll(list: FileList | null): Promise<void> {
  const files = Array.from(list ?? [], (file) => ({ name: file.name, blob: file }));
  return files.length > 0 ? read(files) : Promise.resolve();
}
