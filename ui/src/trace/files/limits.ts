// What files may contain. The limits bound the memory of the page.

/** Maximum size of a file in bytes, after decompression. */
export const maxFileSize = 256e6;

/** Maximum number of spans of all open files. */
export const maxSpans = 1_000_000;
