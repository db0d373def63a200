import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { ApiError, request, unreadable } from '../../api/client';
import { config } from '../../shell/config';
import { Button } from '../../shell/controls';
import { announce } from '../../shell/live-region';
import { t } from '../../shell/text';

/** The loading of demo data by the server. */
export interface DemoLoad {
  loading: boolean;
  /** Why the last attempt failed. */
  error: ApiError | null;
  load: () => void;
}

/** Loads demo data when asked to. The server answers when it has stored everything. */
export function useDemoLoad(): DemoLoad {
  const [loading, setLoading] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const load = async (): Promise<void> => {
    setLoading(true);
    setError(null);
    try {
      await request('/api/ui/v1/demo', {}, { method: 'POST', timeout: 600_000 });
      announce(t('Demo data is loaded'));
    } catch (e) {
      setError(e instanceof ApiError ? e : new ApiError(0, unreadable));
    } finally {
      setLoading(false);
    }
  };
  return { loading, error, load: () => void load() };
}

/** The button that loads demo data, or what to show instead where the server does not offer that. */
export function DemoButton({ demo, otherwise }: { demo: DemoLoad; otherwise: ComponentChildren }) {
  if (!config.value?.capabilities.demo) return <>{otherwise}</>;
  return <Button disabled={demo.loading} onClick={demo.load}>{demo.loading ? t('Loading demo data…') : t('Load demo data')}</Button>;
}
