import './shell/tokens.css';
import './shell/base.css';
import { render } from 'preact';
import { App, preload } from './app';

preload();
const app = document.getElementById('app')!;
app.replaceChildren(); // what the page says until now
render(<App />, app);
