/**
 * The numbers of the charts: deflated bytes, in which each column is differences of integers. Nothing here trusts the
 * bytes: what was cut or changed on its way gives {@link Damaged}, never wrong indices.
 */

import type { Meta } from "./page";

/** The values of one series in the rows of a level, in the chart's unit; NaN where nothing was measured. */
export interface Column {
  mean: Float64Array;
  /** The least and the largest value within each row's time, where rows hold more than one sample. */
  min: Float64Array | null;
  max: Float64Array | null;
}

/** The curves of a stretch of time. */
export interface Level {
  from: number;
  to: number;
  /** Where each row ends, seconds from the start; ascending. */
  times: Float64Array;
  /** By chart and series; null where this level lacks it. */
  charts: (Column | null)[][];
}

export class Damaged extends Error {
  constructor(what: string) {
    super(`the charts' data is damaged: ${what}`);
  }
}

export async function inflate(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser cannot unpack the charts' data (it has no DecompressionStream)");
  }
  try {
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    throw new Damaged("it cannot be unpacked");
  }
}

/** Reads all levels; all bytes must be used. */
export function decode(bytes: Uint8Array, meta: Pick<Meta, "levels" | "charts">): Level[] {
  const reader = new Reader(bytes);
  const levels = meta.levels.map((head) => ({
    from: head.from_s,
    to: head.to_s,
    times: times(reader, head.rows),
    charts: meta.charts.map((chart) => chart.series.map((series) => cells(reader, head.rows, series.scale))),
  }));
  reader.end();
  return levels;
}

function times(reader: Reader, rows: number): Float64Array {
  const column = reader.room(rows);
  let ms = 0;
  for (let i = 0; i < rows; i++) {
    ms += reader.number();
    column[i] = ms / 1000;
  }
  return column;
}

const ABSENT = 0;
const MEAN = 1;
const MEAN_MIN_MAX = 3;

function cells(reader: Reader, rows: number, scale: number): Column | null {
  const flag = reader.byte();
  if (flag === ABSENT) return null;
  if (flag !== MEAN && flag !== MEAN_MIN_MAX) throw reader.damaged(`unknown kind of column ${flag}`);
  const mean = values(reader, rows, scale);
  if (flag === MEAN) return { mean, min: null, max: null };
  return { mean, min: values(reader, rows, scale), max: values(reader, rows, scale) };
}

function values(reader: Reader, rows: number, scale: number): Float64Array {
  const column = reader.room(rows);
  let value = 0;
  for (let i = 0; i < rows; i++) {
    const code = reader.number();
    if (code === 0) {
      column[i] = NaN;
      continue;
    }
    const zigzag = code - 1;
    value += zigzag % 2 === 0 ? zigzag / 2 : -(zigzag + 1) / 2;
    column[i] = value * scale;
  }
  return column;
}

class Reader {
  #at = 0;
  constructor(private readonly bytes: Uint8Array) {}

  damaged(what: string): Damaged {
    return new Damaged(`${what} at byte ${this.#at} of ${this.bytes.length}`);
  }

  byte(): number {
    const byte = this.bytes[this.#at];
    if (byte === undefined) throw this.damaged("it ends too early");
    this.#at += 1;
    return byte;
  }

  /** An unsigned LEB128 number. By arithmetic, not by bits: numbers reach over 2⁵², bit operators only to 2³². */
  number(): number {
    let value = 0;
    let unit = 1;
    for (;;) {
      const byte = this.byte();
      value += (byte & 0x7f) * unit;
      if (byte < 0x80) break;
      unit *= 128;
    }
    if (value > Number.MAX_SAFE_INTEGER) throw this.damaged("a number is too large");
    return value;
  }

  /** A column of so many rows; each takes a byte at least, so a false count cannot ask for more than the page holds. */
  room(rows: number): Float64Array {
    if (!(rows >= 0 && rows <= this.bytes.length - this.#at)) throw this.damaged("it ends too early");
    return new Float64Array(rows);
  }

  end(): void {
    if (this.#at !== this.bytes.length) throw this.damaged("more follows than was announced");
  }
}
