/** Asks the server that sent the page. What is asked and answered is defined in `crates/report/src/html/data.rs`. */

import { Damaged } from "./data";
import { parsed, readMeta, type PageData } from "./source";

/** A server that has not answered by then will not. */
const PATIENCE_S = 30;

export interface Sent {
  bytes: Uint8Array<ArrayBuffer>;
  /** The name of what was sent; null where it has none. */
  tag: string | null;
}

/** Asks for what is at an address; null where it is what the page has already, by its `tag`. */
export async function ask(url: string, tag: string | null = null): Promise<Sent | null> {
  let response: Response;
  let body: ArrayBuffer;
  try {
    const headers: HeadersInit = tag === null ? {} : { "If-None-Match": tag };
    response = await fetch(url, { cache: "no-store", headers, signal: AbortSignal.timeout(PATIENCE_S * 1000) });
    body = await response.arrayBuffer();
  } catch (error) {
    const isLate = error instanceof DOMException && error.name === "TimeoutError";
    throw new Error(isLate ? `the server did not answer within ${PATIENCE_S} s` : "the server cannot be reached");
  }
  if (response.status === 304) return null;
  if (!response.ok) throw new Error(why(response, body));
  return { bytes: new Uint8Array(body), tag: response.headers.get("ETag") };
}

/** A server that knows why says so in a plain text, of which the first line is a sentence. */
function why(response: Response, body: ArrayBuffer): string {
  const isText = (response.headers.get("Content-Type") ?? "").startsWith("text/plain");
  const [line = ""] = isText ? new TextDecoder().decode(body).split("\n") : [];
  return line === "" ? `the server answered ${response.status}` : line;
}

const NEWLINE = 10;

/** Splits an answer: a line of JSON, then packed numbers. */
export function halves(body: Uint8Array<ArrayBuffer>): [head: string, packed: Uint8Array<ArrayBuffer>] {
  const end = body.indexOf(NEWLINE);
  if (end < 0) throw new Damaged("its first line has no end");
  return [new TextDecoder().decode(body.subarray(0, end)), body.slice(end + 1)];
}

export function split(body: Uint8Array<ArrayBuffer>): PageData {
  const [head, packed] = halves(body);
  return { meta: readMeta(head), packed };
}

export const CLOSER = "memtide-closer/1";

/** The head of a part in full detail. */
export interface CloserHead {
  format: string;
  level: { from_s: number; to_s: number; rows: number };
  /** By chart and series; empty for a chart that has nothing in this part. */
  scales: number[][];
}

export function splitCloser(body: Uint8Array<ArrayBuffer>): [CloserHead, Uint8Array<ArrayBuffer>] {
  const [text, packed] = halves(body);
  const head = parsed(text) as Partial<CloserHead> | null;
  if (head?.format !== CLOSER || !Array.isArray(head.scales)) throw new Damaged(`it is not ${CLOSER}`);
  return [head as CloserHead, packed];
}
