/** Colours for the canvas: those of the style sheet, which has them of palette.ts, so that no colour is written twice. */

import { INK } from "./palette";
import type { Series } from "./page";

export type Theme = "light" | "dark";

const known = new Map<string, readonly [light: string, dark: string]>();

/** The colour of a variable, which the style sheet holds as `light-dark(#rrggbb,#rrggbb)`. */
function variable(name: string, theme: Theme): string {
  let pair = known.get(name);
  if (pair === undefined) {
    const text = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`);
    const [light = INK[0], dark = INK[1]] = text.match(/#[\da-f]{6}/gi) ?? [];
    known.set(name, (pair = [light, dark]));
  }
  return pair[theme === "light" ? 0 : 1];
}

/** The name of a curve's colour as a variable's: `file_cache` is `file-cache`. */
export function variableName(colour: string): string {
  return colour.replace(/_/g, "-");
}

/** So many owners of memory have a colour of their own; a stack has no more areas. */
const OWNERS = 12;

/** The name of a series' colour. `index` is that of an owner of memory among those of both sides. */
export function seriesColour({ colour, is_alike }: Pick<Series, "colour" | "is_alike">, index: number): string {
  return is_alike ? `line_${(index % OWNERS) + 1}` : colour;
}

/** The colour of a curve; what the style sheet does not know is drawn in ink. */
export function dataColour(name: string, theme: Theme): string {
  return variable(variableName(name), theme);
}

export function severityColour(name: string, theme: Theme): string {
  return variable(`is-${name}`, theme);
}

export function surface(name: "ink" | "ink-3" | "panel" | "grid", theme: Theme): string {
  return variable(name, theme);
}

/** The same colour, seen through: an `opacity` of 0 is nothing. */
export function translucent(colour: string, opacity: number): string {
  const alpha = Math.round(opacity * 255)
    .toString(16)
    .padStart(2, "0");
  return colour + alpha;
}
