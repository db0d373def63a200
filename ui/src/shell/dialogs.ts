// What the shell shows only when it is needed.
export { Help } from './help';
export { Login } from './login';
export { Palette } from './palette';
