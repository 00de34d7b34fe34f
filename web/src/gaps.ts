/** Stretches in which nothing was recorded. There may be thousands: all that asks for them goes through them once. */

import type { View } from "./levels";
import type { Gap } from "./page";

/** 1 for each row that does not follow from the one before: a gap lies between. Rows and gaps are in order of time. */
export function breaks(times: Float64Array, gaps: readonly Gap[]): Uint8Array {
  const broken = new Uint8Array(times.length);
  let row = 1;
  for (const [from, to] of gaps) {
    while (row < times.length && (times[row] ?? 0) <= from) row += 1;
    while (row < times.length && (times[row - 1] ?? 0) < to) broken[row++] = 1;
    // The row that follows a gap may follow the next one, too.
    row = Math.max(row - 1, 1);
  }
  return broken;
}

/** The gaps that reach into a view; those that less than `apart` seconds lie between are one. */
export function merged(gaps: readonly Gap[], view: View, apart: number): Gap[] {
  const result: Gap[] = [];
  let last: Gap | undefined;
  for (let index = firstIn(gaps, view); index < gaps.length; index++) {
    const [from, to, lost] = gaps[index] ?? [0, 0, 0];
    if (from > view.to) break;
    if (last !== undefined && from - last[1] < apart) {
      last[1] = Math.max(last[1], to);
      last[2] += lost;
    } else {
      result.push((last = [from, to, lost]));
    }
  }
  return result;
}

/** The first gap that ends in a view or after it. */
function firstIn(gaps: readonly Gap[], view: View): number {
  let [low, high] = [0, gaps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((gaps[middle]?.[1] ?? 0) < view.from) low = middle + 1;
    else high = middle;
  }
  return low;
}
