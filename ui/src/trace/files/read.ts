// Reads the text of a file, which can be compressed with gzip.

import { bytes } from '../../shell/format';
import { t } from '../../shell/text';
import { maxFileSize } from './limits';
import { FileError } from './span';

/** Reads a file as text. Throws a FileError if it is too large or cannot be decompressed. */
export async function readText(blob: Blob): Promise<string> {
  if (blob.size > maxFileSize) throw tooLarge();
  const magic = new Uint8Array(await blob.slice(0, 2).arrayBuffer());
  const gzip = magic[0] === 0x1f && magic[1] === 0x8b;
  if (gzip && typeof DecompressionStream === 'undefined') throw new FileError(t('This browser cannot decompress gzip. Decompress the file first.'));
  const stream = gzip ? blob.stream().pipeThrough(new DecompressionStream('gzip')) : blob.stream();
  return decode(stream);
}

async function decode(stream: ReadableStream<Uint8Array>): Promise<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  const parts: string[] = [];
  let size = 0;
  for (;;) {
    const { value, done } = await reader.read().catch(() => {
      throw new FileError(t('The file cannot be decompressed: it is damaged or cut off.'));
    });
    if (done) return parts.join('') + decoder.decode();
    size += value.length;
    if (size > maxFileSize) throw tooLarge();
    parts.push(decoder.decode(value, { stream: true }));
  }
}

function tooLarge(): FileError {
  return new FileError(t('The file is larger than {max}, the maximum that this page reads. Split it, or send it to a server.', { max: bytes(maxFileSize) }));
}
