/** What a page is about: one source, or two that are compared. What belongs to one of two has its word in `data-side`. */

import { element } from "./dom";
import type { View } from "./levels";
import type { Meta } from "./page";

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

interface Timed {
  span_s: number;
  worst_s: number;
}

/** How the times of all sources lie beside each other; views are by the clock of the one that opens the page. */
interface Layout {
  whole: View;
  /** What the page opens with. */
  view: View;
  /** How many seconds more a source's clock shows. */
  ahead: (source: Timed) => number;
  /** What of a source is shown in small, by its own clock. */
  range: (source: Timed) => View;
}

/**
 * Beginnings stand beside each other; or the worst moments, where the shorter would be a hairline beside the longer:
 * then the page opens with as much of both as the shorter has.
 */
export function layout(sources: readonly Timed[], opens: Timed, by: "beginnings" | "moments"): Layout {
  const isByMoments = by === "moments" && sources.length > 1;
  const ahead = (source: Timed) => (isByMoments ? source.worst_s - opens.worst_s : 0);
  const range = ({ span_s }: Timed): View => ({ from: 0, to: Math.max(span_s, 1e-3) });
  const own = (source: Timed): View => ({ from: 0 - ahead(source), to: range(source).to - ahead(source) });
  const views = sources.map(own);
  const whole = { from: Math.min(...views.map(({ from }) => from)), to: Math.max(...views.map(({ to }) => to)) };
  const shortest = sources.reduce((one, other) => (other.span_s < one.span_s ? other : one), opens);
  return { whole, view: isByMoments ? own(shortest) : whole, ahead, range: (source) => (isByMoments ? range(source) : whole) };
}

/** The names of things alike in the charts of all sources, by chart: what has a name has one tone on both sides. */
export function namesAlike(metas: readonly Pick<Meta, "charts">[]): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  for (const { id, series } of metas.flatMap(({ charts }) => charts)) {
    const known = names.get(id) ?? [];
    const alike = series.filter((one) => one.is_alike && !known.includes(one.label));
    names.set(id, [...known, ...alike.map(({ label }) => label)]);
  }
  return names;
}
