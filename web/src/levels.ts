/**
 * Which of the levels is drawn: the finest whose stretch covers the view and that is not more than a screen can show;
 * where a finer one covers much of the view, but not all, the coarse one is drawn around it.
 */

import type { Column, Level } from "./data";

export interface View {
  from: number;
  to: number;
}

/** The curves of one chart as drawn. */
export interface Picture {
  /** Tells pictures apart: drawn anew when it changes. */
  key: string;
  isReduced: boolean;
  times: Float64Array;
  columns: (Column | null)[];
}

/** More rows than this in a view are more than pixels, and only slow. */
const MOST_ROWS = 4000;
/** From this part of the view on, a finer stretch is worth a change of resolution in the middle of a curve. */
const WORTH = 0.3;

export function rowsIn(level: Level, view: View): number {
  return after(level.times, view.to) - before(level.times, view.from);
}

/** The first row at or after `at`. */
export function before(times: Float64Array, at: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first row after `at`. */
function after(times: Float64Array, at: number): number {
  const row = before(times, at);
  return times[row] === at ? row + 1 : row;
}

/** The row closest to `at`; -1 where there is none. */
export function nearest(times: Float64Array, at: number): number {
  const row = before(times, at);
  if (row === 0) return times.length > 0 ? 0 : -1;
  if (row === times.length) return row - 1;
  return at - (times[row - 1] ?? 0) <= (times[row] ?? 0) - at ? row - 1 : row;
}

const overlap = (level: Level, view: View) => Math.min(level.to, view.to) - Math.max(level.from, view.from);

/** Finest first: by rows per second. */
function byFineness(levels: Level[]): Level[] {
  const density = (level: Level) => level.times.length / Math.max(level.to - level.from, 1e-3);
  return [...levels].sort((a, b) => density(b) - density(a));
}

export class Levels {
  readonly #finestFirst: Level[];
  readonly #whole: Level;

  constructor(private readonly all: Level[]) {
    const [whole] = all;
    if (whole === undefined) throw new Error("this page has no level of its charts' data");
    this.#whole = whole;
    this.#finestFirst = byFineness(all);
  }

  get range(): View {
    return this.#whole;
  }

  /** Whether a level tells all that the whole range's tells of a chart. */
  #isOf(level: Level, chart: number): boolean {
    const columns = level.charts[chart] ?? [];
    return (this.#whole.charts[chart] ?? []).every((column, i) => column === null || (columns[i] ?? null) !== null);
  }

  #suits(level: Level, chart: number, view: View): boolean {
    return this.#isOf(level, chart) && rowsIn(level, view) <= MOST_ROWS;
  }

  picture(chart: number, view: View): Picture {
    const length = Math.max(view.to - view.from, 1e-3);
    const suitable = this.#finestFirst.filter((level) => this.#suits(level, chart, view));
    const coarse = suitable.find((level) => overlap(level, view) >= length * 0.999) ?? this.#whole;
    const fine = suitable.find((level) => overlap(level, view) >= length * WORTH) ?? coarse;
    const isFiner = this.#finestFirst.indexOf(fine) < this.#finestFirst.indexOf(coarse);
    return isFiner ? this.#joined(chart, coarse, fine) : this.#plain(chart, coarse);
  }

  #plain(chart: number, level: Level): Picture {
    return {
      key: String(this.all.indexOf(level)),
      isReduced: level.isReduced,
      times: level.times,
      columns: level.charts[chart] ?? [],
    };
  }

  #joined(chart: number, coarse: Level, fine: Level): Picture {
    const head = before(coarse.times, fine.from);
    const tail = after(coarse.times, fine.to);
    const join = (a: Float64Array, b: Float64Array) => concatenated(a.subarray(0, head), b, a.subarray(tail));
    const columns = (coarse.charts[chart] ?? []).map((around, i): Column | null => {
      const inside = fine.charts[chart]?.[i] ?? null;
      if (around === null || inside === null) return null;
      const hasExtremes = around.min !== null || inside.min !== null;
      return {
        mean: join(around.mean, inside.mean),
        min: hasExtremes ? join(around.min ?? around.mean, inside.min ?? inside.mean) : null,
        max: hasExtremes ? join(around.max ?? around.mean, inside.max ?? inside.mean) : null,
      };
    });
    const key = `${this.all.indexOf(coarse)}/${this.all.indexOf(fine)}`;
    return { key, isReduced: fine.isReduced, times: join(coarse.times, fine.times), columns };
  }

  /** A chart at each level. */
  pictures(chart: number): Picture[] {
    return this.all.filter((level) => this.#isOf(level, chart)).map((level) => this.#plain(chart, level));
  }

  /** The finest curves of a chart that know a moment; what is pinned is told by them. */
  finestAt(chart: number, at: number): Picture {
    const holds = (level: Level) => level.from - 1e-3 <= at && at <= level.to + 1e-3;
    const level = this.#finestFirst.find((level) => holds(level) && this.#isOf(level, chart)) ?? this.#whole;
    return this.#plain(chart, level);
  }

  /** The largest and the least value of a series at any level, so that an axis fits all that zooming can show. */
  extent(chart: number, series: number): View | null {
    let extent: View | null = null;
    for (const level of this.all) {
      const column = level.charts[chart]?.[series] ?? null;
      if (column === null) continue;
      for (const values of [column.min ?? column.mean, column.max ?? column.mean]) {
        for (const value of values) {
          if (Number.isNaN(value)) continue;
          extent ??= { from: value, to: value };
          if (value < extent.from) extent.from = value;
          if (value > extent.to) extent.to = value;
        }
      }
    }
    return extent;
  }
}

function concatenated(...pieces: Float64Array[]): Float64Array {
  const whole = new Float64Array(pieces.reduce((rows, piece) => rows + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
