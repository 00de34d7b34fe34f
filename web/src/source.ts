/**
 * Where the charts' data come from: the page itself, or the server that sent it. What a page names and what a server
 * answers is defined in `crates/report/src/html/data.rs`.
 */

import { Damaged } from "./data";
import { FORMAT, type Meta } from "./page";
import { idOf, SIDES, type Side } from "./sides";

export interface PageData {
  meta: Meta;
  packed: Uint8Array<ArrayBuffer>;
}

export interface DataSource {
  side: Side;
  /** The data as they are now. */
  read(): Promise<PageData>;
  /** After how many seconds there may be others; null: never. */
  every: number | null;
}

/** What the page has data of: two sources where it compares them. Only a page of one is ever fetched. */
export function dataSources(): DataSource[] {
  return SIDES.flatMap((side) => {
    const head = document.getElementById(idOf(side, "memtide-page"));
    if (head === null) return [];
    const { url, every } = head.dataset;
    if (url !== undefined) return [fetched(side, url, Number(every))];
    return [embedded(side, head, document.getElementById(idOf(side, "memtide-data")))];
  });
}

function embedded(side: Side, head: HTMLElement, numbers: HTMLElement | null): DataSource {
  const read = () => ({ meta: readMeta(head.textContent ?? ""), packed: fromBase64(numbers?.textContent ?? "") });
  return { side, every: null, read: async () => read() };
}

/** A server that has not answered by then will not. */
const PATIENCE_S = 30;

function fetched(side: Side, url: string, every: number): DataSource {
  return { side, every, read: async () => split(await answer(url)) };
}

async function answer(url: string): Promise<Uint8Array<ArrayBuffer>> {
  let response: Response;
  let body: ArrayBuffer;
  try {
    response = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_S * 1000) });
    body = await response.arrayBuffer();
  } catch (error) {
    const isLate = error instanceof DOMException && error.name === "TimeoutError";
    throw new Error(isLate ? `the server did not answer within ${PATIENCE_S} s` : "the server cannot be reached");
  }
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return new Uint8Array(body);
}

const NEWLINE = 10;

/** Splits what a server answers: a line of JSON, then the packed numbers. */
export function split(body: Uint8Array<ArrayBuffer>): PageData {
  const end = body.indexOf(NEWLINE);
  if (end < 0) throw new Damaged("its first line has no end");
  return { meta: readMeta(new TextDecoder().decode(body.subarray(0, end))), packed: body.slice(end + 1) };
}

const LISTS = ["offsets", "levels", "gaps", "charts", "findings", "events"] as const;

export function readMeta(text: string): Meta {
  let meta: Partial<Meta> | null;
  try {
    meta = JSON.parse(text) as Partial<Meta> | null;
  } catch {
    throw new Damaged("its head is not JSON");
  }
  if (meta?.format !== FORMAT) throw new Damaged(`it is not ${FORMAT}`);
  if (!LISTS.every((name) => Array.isArray(meta[name]))) throw new Damaged("its head lacks a list");
  return meta as Meta;
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  let binary: string;
  try {
    binary = atob(text.trim());
  } catch {
    throw new Damaged("it is not base64");
  }
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
