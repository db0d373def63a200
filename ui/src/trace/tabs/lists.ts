// The views in rows, which are loaded together: they share most of their code.

export { default as Table } from './table';
export { default as Statistics } from './statistics';
export { default as Events } from './events';
