/**
 * Moments as people read them: by the host's clock where the recording knows it, else as offsets from the first sample.
 * Inside, every time is seconds from the start.
 */

import type { Meta } from "./page";

/** Steps between labels of an axis, in seconds: each divides the next unit of the clock. */
const STEPS = [
  0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800,
  604_800, 1_209_600, 2_419_200,
];
const DAY = 86_400;

export class Clock {
  /** Seconds since 1970 in the host's zone at the start; without a wall clock, what an offset counts from. */
  readonly #start: number;
  readonly isOfTheWall: boolean;

  constructor(meta: Pick<Meta, "start_unix_ms" | "utc_offset_min" | "offset_s" | "span_s">) {
    this.isOfTheWall = meta.start_unix_ms !== null;
    this.#start =
      meta.start_unix_ms === null ? (meta.offset_s ?? 0) : meta.start_unix_ms / 1000 + (meta.utc_offset_min ?? 0) * 60;
    this.#days = Math.floor((this.#start + meta.span_s) / DAY) - Math.floor(this.#start / DAY);
  }

  /** How many midnights the range holds. */
  readonly #days: number;

  /** A moment, to the second: `02:23:33`, with its day where the range has several; of a capture `0:24`. */
  moment(at: number): string {
    if (!this.isOfTheWall) return offset(this.#start + at);
    const text = this.#utc(at).toISOString().slice(11, 19);
    return this.#days > 0 ? `${this.#day(at)} ${text}` : text;
  }

  /** `Nov 21`. */
  #day(at: number): string {
    return this.#utc(at).toLocaleDateString("en-US", { month: "short", day: "numeric", timeZone: "UTC" });
  }

  #utc(at: number): Date {
    return new Date((this.#start + at) * 1000);
  }

  /** A label of an axis whose labels are `step` apart. */
  label(at: number, step: number): string {
    if (!this.isOfTheWall) return step < 1 ? `${(this.#start + at).toFixed(1)} s` : offset(this.#start + at);
    const date = this.#utc(at + 1e-6);
    const isMidnight = (this.#start + at) % DAY < 1e-3;
    if (step >= DAY || (isMidnight && step >= 60)) {
      return date.toLocaleDateString("en-US", { weekday: "short", timeZone: "UTC" }) + " " + date.getUTCDate();
    }
    if (step < 1) return date.toISOString().slice(14, 21);
    return date.toISOString().slice(11, step < 60 ? 19 : 16);
  }

  /** Where an axis of `width` pixels has labels, each at least `space` pixels from the next, on round times of the clock. */
  splits(from: number, to: number, width: number, space: number): { at: number[]; step: number } {
    const least = ((to - from) / Math.max(width, 1)) * space;
    const step = STEPS.find((step) => step >= least) ?? Math.ceil(least / DAY) * DAY;
    const at: number[] = [];
    for (let i = Math.ceil((this.#start + from) / step - 1e-6); i * step <= this.#start + to + 1e-6; i++) {
      at.push(i * step - this.#start);
    }
    return { at, step };
  }
}

/** A point in a timeline: `0:11`, `1:02:03`. */
export function offset(at: number): string {
  const total = Math.round(at);
  const [h, m, s] = [Math.floor(total / 3600), Math.floor(total / 60) % 60, total % 60];
  const two = (n: number) => String(n).padStart(2, "0");
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}
