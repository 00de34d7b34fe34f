/**
 * What of a picture is in view, with not more rows than there are pixels: where there are more, some rows together become
 * one, with their mean and the range of their values. So drawing costs what the screen is large, and no peak is lost.
 */

import type { Column } from "./data";
import { before, type Picture, type View } from "./levels";

export interface Cut {
  times: Float64Array;
  columns: (Column | null)[];
  /** 1 where a row does not follow from the one before: a gap lies between. */
  broken: Uint8Array;
}

export function cut(picture: Picture, broken: Uint8Array, view: View, pixels: number): Cut {
  const { times, columns } = picture;
  // One more row on either side, so that curves reach the edges.
  const first = Math.max(before(times, view.from) - 1, 0);
  const last = Math.min(before(times, view.to) + 1, times.length - 1);
  const together = Math.max(Math.ceil((last - first + 1) / Math.max(pixels, 1)), 1);
  if (together === 1) {
    const part = <A extends Float64Array | Uint8Array>(rows: A) => rows.subarray(first, last + 1) as A;
    return {
      times: part(times),
      broken: part(broken),
      columns: columns.map(
        (column) =>
          column && {
            mean: part(column.mean),
            min: column.min && part(column.min),
            max: column.max && part(column.max),
          },
      ),
    };
  }
  // Counted from the first row of all, so that panning does not change which rows are together.
  const start = Math.floor(first / together);
  const bins: Bins = { start, count: Math.floor(last / together) - start + 1, together };
  return {
    times: binned(times, bins, (row, end) => times[end - 1] ?? times[row] ?? 0),
    broken: Uint8Array.from(binned(broken, bins, (row, end) => Math.max(...broken.subarray(row, end)))),
    columns: columns.map(
      (column) =>
        column && {
          mean: binned(column.mean, bins, (row, end) => mean(column.mean, row, end)),
          min: binned(column.mean, bins, (row, end) => least(column.min ?? column.mean, row, end)),
          max: binned(column.mean, bins, (row, end) => most(column.max ?? column.mean, row, end)),
        },
    ),
  };
}

interface Bins {
  start: number;
  count: number;
  together: number;
}

function binned(
  rows: Float64Array | Uint8Array,
  { start, count, together }: Bins,
  value: (row: number, end: number) => number,
): Float64Array {
  const result = new Float64Array(count);
  for (let bin = 0; bin < count; bin++) {
    const row = (start + bin) * together;
    result[bin] = value(row, Math.min(row + together, rows.length));
  }
  return result;
}

/** Of what was measured; NaN where nothing was. */
function mean(values: Float64Array, row: number, end: number): number {
  let [sum, count] = [0, 0];
  for (; row < end; row++) {
    const value = values[row] ?? NaN;
    if (Number.isNaN(value)) continue;
    sum += value;
    count += 1;
  }
  return count > 0 ? sum / count : NaN;
}

function least(values: Float64Array, row: number, end: number): number {
  let result = NaN;
  for (; row < end; row++) if (!((values[row] ?? NaN) >= result)) result = keep(result, values[row] ?? NaN);
  return result;
}

function most(values: Float64Array, row: number, end: number): number {
  let result = NaN;
  for (; row < end; row++) if (!((values[row] ?? NaN) <= result)) result = keep(result, values[row] ?? NaN);
  return result;
}

/** A new extreme, unless it was not measured. */
const keep = (known: number, value: number) => (Number.isNaN(value) ? known : value);
