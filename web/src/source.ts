/** The charts' data as a page holds them, or as a server sends them: `crates/report/src/html/data.rs`. */

import { Damaged } from "./data";
import { FORMAT, type Meta } from "./page";
import { idOf, SIDES, type Side } from "./sides";

export interface PageData {
  meta: Meta;
  packed: Uint8Array<ArrayBuffer>;
}

/** What the page itself has data of: two sources where it compares them. */
export function embedded(): { side: Side; data: () => PageData }[] {
  return SIDES.flatMap((side) => {
    const head = document.getElementById(idOf(side, "memtide-page"));
    if (head === null) return [];
    const numbers = document.getElementById(idOf(side, "memtide-data"));
    const data = () => ({ meta: readMeta(head.textContent ?? ""), packed: fromBase64(numbers?.textContent ?? "") });
    return [{ side, data }];
  });
}

const LISTS = ["offsets", "levels", "gaps", "charts", "findings", "events"] as const;

export function readMeta(text: string): Meta {
  const meta = parsed(text) as Partial<Meta> | null;
  if (meta?.format !== FORMAT) throw new Damaged(`it is not ${FORMAT}`);
  if (!LISTS.every((name) => Array.isArray(meta[name]))) throw new Damaged("its head lacks a list");
  return meta as Meta;
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Damaged("its head is not JSON");
  }
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
