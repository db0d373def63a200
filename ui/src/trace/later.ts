// What the trace page loads after its first rows.
export { default as DetailPanel } from './detail/panel';
export { default as Minimap } from './timeline/minimap';
