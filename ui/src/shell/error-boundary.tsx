import { Component, type ComponentChildren } from 'preact';
import { Button } from './controls';
import { Mark } from './icons';
import { t } from './text';
import css from './states.module.css';

/** Shows an error of a page in its place. The shell stays; a key gives each page a new boundary. */
export class ErrorBoundary extends Component<{ children: ComponentChildren }, { error: Error | null }> {
  override state = { error: null };

  static override getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const error = this.state.error as Error | null;
    if (!error) return this.props.children;
    return (
      <div role="alert" class={css.crash}>
        <p class={css.emptyTitle}><Mark kind="error" label="" />{' '}{t('This page cannot be shown.')}</p>
        <p>{error.message}</p>
        <Button onClick={() => this.setState({ error: null })}>{t('Try again')}</Button>
      </div>
    );
  }
}
