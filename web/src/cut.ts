/**
 * What of a picture is in view, with not more rows than there are pixels: rows that end in one pixel's time become one, with
 * their mean and the range of their values. So painting costs what the screen is large, and no peak of a line is lost.
 */

import type { Column } from "./data";
import { before, type Picture, type View } from "./levels";

export type Cut = Omit<Picture, "key">;

export function cut(picture: Picture, view: View, pixels: number): Cut {
  const { times } = picture;
  // As long at each place, so that panning does not change which rows are together.
  const pixel = (view.to - view.from) / Math.max(pixels, 1);
  const isNext = (row: number) =>
    row <= 0 || row >= times.length || Math.floor((times[row] ?? 0) / pixel) !== Math.floor((times[row - 1] ?? 0) / pixel);
  // One more row on either side, so that curves reach the edges.
  let first = Math.max(before(times, view.from) - 1, 0);
  let end = Math.min(before(times, view.to) + 2, times.length);
  while (!isNext(first)) first -= 1;
  while (!isNext(end)) end += 1;
  const starts: number[] = [];
  for (let row = first; row < end; row++) if (isNext(row)) starts.push(row);
  if (starts.length === end - first) return plain(picture, first, end);
  return together(picture, Uint32Array.from([...starts, end]));
}

function plain({ times, broken, columns }: Picture, first: number, end: number): Cut {
  return {
    times: times.subarray(first, end),
    broken: broken.subarray(first, end),
    columns: columns.map(
      (column) =>
        column && {
          mean: column.mean.subarray(first, end),
          min: column.min && column.min.subarray(first, end),
          max: column.max && column.max.subarray(first, end),
        },
    ),
  };
}

/** Each row from one of `starts` to the next becomes one; the last of them is where all end. */
function together(picture: Picture, starts: Uint32Array): Cut {
  const { times, broken, columns } = picture;
  const first = starts[0] ?? 0;
  const weights = durations(picture, first, starts[starts.length - 1] ?? 0);
  const each = (value: (row: number, end: number) => number) =>
    filled(starts.length - 1, (at) => value(starts[at] ?? 0, starts[at + 1] ?? 0));
  return {
    times: each((_, end) => times[end - 1] ?? 0),
    broken: Uint8Array.from(each((row, end) => (broken.subarray(row, end).includes(1) ? 1 : 0))),
    columns: columns.map((column): Column | null => {
      if (column === null) return null;
      const [low, high] = [column.min ?? column.mean, column.max ?? column.mean];
      return {
        mean: each((row, end) => mean(column.mean, weights, first, row, end)),
        min: each((row, end) => least(low, row, end)),
        max: each((row, end) => most(high, row, end)),
      };
    }),
  };
}

/** How long each row is; one behind a gap as long as the one after it, which was measured alike. */
function durations({ times, broken }: Picture, first: number, end: number): Float64Array {
  const since = (row: number) =>
    row > 0 && row < times.length && broken[row] === 0 ? (times[row] ?? 0) - (times[row - 1] ?? 0) : 0;
  return filled(end - first, (at) => since(first + at) || since(first + at + 1) || 1);
}

/** So many values. `Float64Array.from` takes several times as long, and this runs for each series at each step of a zoom. */
function filled(length: number, value: (at: number) => number): Float64Array {
  const values = new Float64Array(length);
  for (let at = 0; at < length; at++) values[at] = value(at);
  return values;
}

/** Of what was measured, each row by its duration; NaN where nothing was. */
function mean(values: Float64Array, weights: Float64Array, first: number, row: number, end: number): number {
  if (end === row + 1) return values[row] ?? NaN;
  let [sum, whole] = [0, 0];
  for (; row < end; row++) {
    const value = values[row] ?? NaN;
    if (Number.isNaN(value)) continue;
    const weight = weights[row - first] ?? 0;
    sum += value * weight;
    whole += weight;
  }
  return whole > 0 ? sum / whole : NaN;
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
