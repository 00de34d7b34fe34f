/** Areas on top of each other. */

import type { Picture } from "./levels";

/**
 * The upper edge of each area, from the bottom. A part that was not measured in a row takes no room there; a row in which
 * nothing was measured stays missing, so that a gap is a gap.
 */
export function edges(picture: Pick<Picture, "times" | "columns">, isData: (series: number) => boolean): Float64Array[] {
  const rows = picture.times.length;
  let below: Float64Array = new Float64Array(rows).fill(NaN);
  return picture.columns.map((column, series) => {
    if (column === null || !isData(series)) return below;
    const edge = new Float64Array(rows);
    for (let row = 0; row < rows; row++) edge[row] = plus(below[row] ?? NaN, column.mean[row] ?? NaN);
    below = edge;
    return edge;
  });
}

function plus(a: number, b: number): number {
  if (Number.isNaN(b)) return a;
  return Number.isNaN(a) ? b : a + b;
}
