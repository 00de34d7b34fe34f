/**
 * What of a picture is in view, with not more rows than there are pixels: rows that end in one pixel's time become one, with
 * their mean and the range of their values. So painting costs what the screen is large, and no peak of a line is lost.
 */

import type { Column } from "./data";
import { before, type Picture, type View } from "./levels";

export type Cut = Omit<Picture, "key">;

/** Which rows of a picture are painted as one: each from one of `starts` to the next, the last of which is where all end. */
interface Rows {
  from: number;
  to: number;
  starts: Uint32Array;
  /** How long each row of the picture is, from the first of `starts` on; empty where no two are together. */
  weights: Float64Array;
  times: Float64Array;
  broken: Uint8Array;
}

/** What was last cut from a picture's rows, by width: charts of the same width share it. */
const last = new WeakMap<Uint8Array, Map<number, Rows>>();
/** More widths than a page has at a time are those of a window that was resized. */
const MOST_WIDTHS = 8;

export function cut(picture: Picture, view: View, pixels: number, hasBands: boolean): Cut {
  const rows = sharedRows(picture, view, pixels);
  const { times, broken } = rows;
  return { times, broken, columns: picture.columns.map((column) => column && columnOf(column, rows, hasBands)) };
}

function sharedRows(picture: Picture, view: View, pixels: number): Rows {
  let byWidth = last.get(picture.broken);
  if (byWidth === undefined || byWidth.size > MOST_WIDTHS) last.set(picture.broken, (byWidth = new Map<number, Rows>()));
  let rows = byWidth.get(pixels);
  if (rows?.from !== view.from || rows.to !== view.to) byWidth.set(pixels, (rows = rowsOf(picture, view, pixels)));
  return rows;
}

function rowsOf(picture: Picture, { from, to }: View, pixels: number): Rows {
  const { times, broken } = picture;
  // As long at each place, so that panning does not change which rows are together.
  const pixel = (to - from) / Math.max(pixels, 1);
  const isNext = (row: number) =>
    row <= 0 || row >= times.length || Math.floor((times[row] ?? 0) / pixel) !== Math.floor((times[row - 1] ?? 0) / pixel);
  // One more row on either side, so that curves reach the edges.
  let first = Math.max(before(times, from) - 1, 0);
  let end = Math.min(before(times, to) + 2, times.length);
  while (!isNext(first)) first -= 1;
  while (!isNext(end)) end += 1;
  const starts = new Uint32Array(end - first + 1);
  let count = 0;
  for (let row = first; row < end; row++) if (isNext(row)) starts[count++] = row;
  starts[count] = end;
  const shared = { from, to, starts: starts.subarray(0, count + 1) };
  if (count === end - first) {
    return { ...shared, weights: new Float64Array(), times: times.subarray(first, end), broken: broken.subarray(first, end) };
  }
  const each = (value: (row: number, end: number) => number) => together(shared.starts, value);
  return {
    ...shared,
    weights: durations(picture, first, end),
    times: each((_, end) => times[end - 1] ?? 0),
    broken: Uint8Array.from(each((row, end) => (broken.subarray(row, end).includes(1) ? 1 : 0))),
  };
}

function columnOf(column: Column, { starts, weights }: Rows, hasBands: boolean): Column {
  const [first = 0, end = 0] = [starts[0], starts[starts.length - 1]];
  if (weights.length === 0) {
    const part = (values: Float64Array | null) => values && values.subarray(first, end);
    return { mean: column.mean.subarray(first, end), min: part(column.min), max: part(column.max) };
  }
  const [low, high] = [column.min ?? column.mean, column.max ?? column.mean];
  return {
    mean: together(starts, (row, end) => mean(column.mean, weights, first, row, end)),
    min: hasBands ? together(starts, (row, end) => least(low, row, end)) : null,
    max: hasBands ? together(starts, (row, end) => most(high, row, end)) : null,
  };
}

/** A value for each row that is painted. */
function together(starts: Uint32Array, value: (row: number, end: number) => number): Float64Array {
  return filled(starts.length - 1, (at) => value(starts[at] ?? 0, starts[at + 1] ?? 0));
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
