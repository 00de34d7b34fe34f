/** What a page is about: one source, or two that are compared. What belongs to one of two has its word in `data-side`. */

import { element } from "./dom";

/** Empty where the page is about one source. */
export type Side = "" | "before" | "after";

export const SIDES: readonly Side[] = ["", "before", "after"];

/** Which side an element is about. */
export function sideOf(element: Element): Side {
  const word = element.closest<HTMLElement>("[data-side]")?.dataset.side;
  return word === "before" || word === "after" ? word : "";
}

/** The id of a block of which there is one for each side. */
export function idOf(side: Side, kind: string, name: string | number = ""): string {
  const own = side === "" ? kind : `${kind}-${side}`;
  return name === "" ? own : `${own}-${name}`;
}

/** Where a side's navigator stands; a place of its own where the page has none for it. */
export function placeOf(side: Side): HTMLElement {
  const found = document.querySelector<HTMLElement>(side === "" ? "#navigator" : `#navigator > [data-side="${side}"]`);
  return found ?? element("div");
}
