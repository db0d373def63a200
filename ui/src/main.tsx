import './shell/tokens.css';
import './shell/base.css';
import { render } from 'preact';
import { App, preload } from './app';

preload();
render(<App />, document.getElementById('app')!);
