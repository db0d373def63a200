// What the shell loads after the page.
export { Help } from './help';
export { Login } from './login';
export { PaletteList } from './palette-list';
