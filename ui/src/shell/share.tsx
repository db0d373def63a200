import { Button } from './controls';
import { Menu } from './floating';
import { t } from './text';
import { copy, toast } from './toast';

/** What a page has found: one sentence, the address of a page that shows it, and elements for a picture. */
export interface Finding {
  sentence: string;
  /** Without the origin. */
  href: string;
  parts: HTMLElement[];
}

/** A text as it is shown, in one line. */
export const textOf = (element: HTMLElement | null): string => (element?.innerText ?? '').replace(/\s+/g, ' ').replace(/ ,/g, ',').trim();

/** The charts of the page. */
export const chartsOf = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>('#main [data-chart]')];

/** Shares a finding: copies its sentence with a link, or makes a picture. `finding` is asked when an item is chosen. */
export function ShareMenu({ finding }: { finding: () => Finding }) {
  const text = (): string => {
    const { sentence, href } = finding();
    return `${sentence}\n${new URL(href, document.baseURI)}`;
  };
  return (
    <Menu
      label={t('Share this finding')} align="end" trigger={(p) => <Button kind="quiet" icon="copy" {...p}>{t('Share')}</Button>}
      items={[
        { label: t('Copy sentence and link'), onSelect: () => void copy(text(), t('Finding')) },
        { label: t('Copy picture'), onSelect: () => void copyPicture(finding()) },
        { label: t('Download picture'), onSelect: () => void download(finding()) },
      ]}
    />
  );
}

async function picture({ parts, sentence, href }: Finding): Promise<Blob> {
  const { pictureOf } = await import('./picture');
  return pictureOf(parts, sentence, String(new URL(href, document.baseURI)));
}

/** Browsers copy pictures only on HTTPS and localhost. */
async function copyPicture(finding: Finding): Promise<void> {
  try {
    await navigator.clipboard.write([new ClipboardItem({ 'image/png': picture(finding) })]);
    toast(t('{what} copied', { what: t('Picture') }));
  } catch {
    await download(finding);
  }
}

async function download(finding: Finding): Promise<void> {
  const a = document.createElement('a');
  a.href = URL.createObjectURL(await picture(finding));
  a.download = 'finding.png';
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
}
