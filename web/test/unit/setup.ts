/** Debian's Node 18 cannot unpack what every browser can: `deflate-raw` came with 20.12. */

import { Readable, Writable } from "node:stream";
import { createInflateRaw } from "node:zlib";

function isKnown(): boolean {
  try {
    new DecompressionStream("deflate-raw");
    return true;
  } catch {
    return false;
  }
}

if (!isKnown()) {
  globalThis.DecompressionStream = class {
    readonly readable: ReadableStream;
    readonly writable: WritableStream;
    constructor() {
      const inflate = createInflateRaw();
      this.readable = Readable.toWeb(inflate) as ReadableStream;
      this.writable = Writable.toWeb(inflate) as WritableStream;
    }
  } as typeof DecompressionStream;
}
