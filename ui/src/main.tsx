import './shell/tokens.css';
import './shell/base.css';
import { render } from 'preact';
import { App } from './app';

render(<App />, document.getElementById('app')!);
