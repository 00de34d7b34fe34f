/**
 * Which of the levels is drawn: the finest whose stretch covers the view and that is not more than a screen can show;
 * where a finer one covers much of the view, but not all, the coarse one is drawn around it.
 */

import type { Column, Level } from "./data";
import { breaks } from "./gaps";
import type { Gap } from "./page";

export interface View {
  from: number;
  to: number;
}

/** The curves of one chart as drawn. */
export interface Picture {
  /** Tells pictures apart: drawn anew when it changes. */
  key: string;
  times: Float64Array;
  /** 1 where a row does not follow from the one before: a gap lies between. */
  broken: Uint8Array;
  columns: (Column | null)[];
}

/** Rows of a picture, the same for all charts. */
type Rows = Omit<Picture, "columns">;

/** Each row of a view is read when it is painted, so more than this are slow; and pixels are fewer. */
const MOST_ROWS = 4000;
/** From this part of the view on, a finer stretch is worth a change of resolution in the middle of a curve. */
const WORTH = 0.3;

function rowsIn(level: Level, view: View): number {
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

/** So many stretches are kept that were added. */
const MOST_ADDED = 8;

export class Levels {
  #finestFirst: Level[];
  readonly #whole: Level;

  readonly #added: Level[] = [];
  readonly #names = new Map<Level, string>();
  readonly #rows = new Map<string, Rows>();
  /** The last picture of each chart that was joined: the same one as long as the view moves within its levels. */
  readonly #lastJoined = new Map<number, Picture>();

  constructor(
    private readonly all: Level[],
    private readonly gaps: readonly Gap[] = [],
    /** Seconds between samples. */
    private readonly interval = 0,
  ) {
    const [whole] = all;
    if (whole === undefined) throw new Error("this page has no level of its charts' data");
    this.#whole = whole;
    this.#finestFirst = byFineness(all);
  }

  /** Adds a stretch in more detail; the last few of those stay. */
  add(level: Level): void {
    this.#added.push(level);
    if (this.#added.length > MOST_ADDED) this.#added.shift();
    this.#finestFirst = byFineness([...this.all, ...this.#added]);
  }

  get range(): View {
    return this.#whole;
  }

  /** Beside another source a moment may lie where nothing of this one was measured; empty where it does not. */
  outside(at: number): "" | "before its beginning" | "after its end" {
    if (at < this.range.from - this.interval) return "before its beginning";
    return at > this.range.to + this.interval ? "after its end" : "";
  }

  /** Whether a level has every series of a chart that the whole range's level has. */
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
      ...this.#rowsOf(this.#nameOf(level), () => level.times),
      columns: level.charts[chart] ?? [],
    };
  }

  #nameOf(level: Level): string {
    const name = this.#names.get(level) ?? String(this.#names.size);
    this.#names.set(level, name);
    return name;
  }

  /** Made once for all charts. */
  #rowsOf(key: string, times: () => Float64Array): Rows {
    let rows = this.#rows.get(key);
    if (rows === undefined) {
      const all = times();
      this.#rows.set(key, (rows = { key, times: all, broken: breaks(all, this.gaps) }));
    }
    return rows;
  }

  #joined(chart: number, coarse: Level, fine: Level): Picture {
    const key = `${this.#nameOf(coarse)}/${this.#nameOf(fine)}`;
    const last = this.#lastJoined.get(chart);
    if (last?.key === key) return last;
    const seam = seamOf(coarse.times, fine.times);
    const columns = (coarse.charts[chart] ?? []).map((around, i): Column | null => {
      const inside = fine.charts[chart]?.[i] ?? null;
      if (around === null || inside === null) return null;
      const hasExtremes = around.min !== null || inside.min !== null;
      return {
        mean: joined(around.mean, inside.mean, seam),
        min: hasExtremes ? joined(around.min ?? around.mean, inside.min ?? inside.mean, seam) : null,
        max: hasExtremes ? joined(around.max ?? around.mean, inside.max ?? inside.mean, seam) : null,
      };
    });
    const times = () => {
      const all = joined(coarse.times, fine.times, seam);
      if (seam.edge !== null) all[seam.head - 1] = seam.edge;
      return all;
    };
    const picture = { ...this.#rowsOf(key, times), columns };
    this.#lastJoined.set(chart, picture);
    return picture;
  }

  /** A chart at each level. */
  pictures(chart: number): Picture[] {
    return this.all.filter((level) => this.#isOf(level, chart)).map((level) => this.#plain(chart, level));
  }

  /** The finest curves of a chart that know a moment; a pinned reading is theirs. */
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

/** Where fine rows take the place of coarse ones. */
interface Seam {
  /** So many coarse rows come before the fine ones. */
  head: number;
  /** The first coarse row after them. */
  tail: number;
  /** Where the last one before them is cut off, if it reaches into them: what it has of the time before is kept. */
  edge: number | null;
}

function seamOf(coarse: Float64Array, fine: Float64Array): Seam {
  const [first = 0, second = first] = fine;
  const tail = after(coarse, fine[fine.length - 1] ?? 0);
  const head = before(coarse, first);
  // The first fine row covers the time since the sample before it.
  const edge = first - (second - first);
  const isCut = head < coarse.length && (coarse[head] ?? 0) > edge && edge > (coarse[head - 1] ?? -Infinity);
  return isCut ? { head: head + 1, tail, edge } : { head, tail, edge: null };
}

function joined(around: Float64Array, inside: Float64Array, { head, tail }: Seam): Float64Array {
  const end = around.subarray(tail);
  const whole = new Float64Array(head + inside.length + end.length);
  whole.set(around.subarray(0, head));
  whole.set(inside, head);
  whole.set(end, head + inside.length);
  return whole;
}
