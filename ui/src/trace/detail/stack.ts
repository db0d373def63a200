// Splits stack traces into the message and the frames.

/** A line of a stack trace. */
export interface Frame {
  text: string;
  /** Whether the frame is in a library or the run time rather than in the application. */
  library: boolean;
}

/** A stack trace: lines before the first frame, and the frames in the order of the text. */
export interface Stack {
  head: string[];
  frames: Frame[];
}

const frameLine = /^\s*(at\s|File "|from\s|#\d+\s|\d+:\s|\.{3} \d+ more)|^\s+\S+\.(go|rs|c|cc|cpp|py|rb|ex):\d+|^[\w./*()[\]-]+\(.*\)$|^goroutine \d+|\(.+:\d+(:\d+)?\)$/;
const library = /node_modules|node:|internal\/|\/usr\/(local\/)?(lib|go)|site-packages|dist-packages|\bjava[x]?\.|\bsun\.|\bjdk\.|org\.(springframework|apache|hibernate|eclipse)\.|io\.netty\.|System\.|Microsoft\.|runtime[./]|<anonymous>|\.cargo\/registry|vendor\//;

/** Parses the text of `exception.stacktrace`. Texts of any form are accepted: unknown lines stay as they are. */
export function parseStack(text: string): Stack {
  const lines = text.replace(/\s+$/, '').split('\n');
  const first = lines.findIndex((line) => frameLine.test(line));
  if (first < 0) return { head: lines, frames: [] };
  return {
    head: lines.slice(0, first).filter((line) => line.trim()),
    frames: lines.slice(first).filter((line) => line.trim()).map((line) => ({ text: line.trim(), library: library.test(line) })),
  };
}

/** Whether the head only repeats the type and message of the exception, which are shown above it. */
export function repeatsMessage(head: string[], type: string, message: string): boolean {
  const text = head.join('\n').trim();
  return text === '' || text === message || text === type || (text.startsWith(type) && text.endsWith(message));
}
