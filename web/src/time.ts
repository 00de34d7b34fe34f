/**
 * Human-readable moments: by the host's clock where the recording knows it, else as offsets from the first sample.
 * Inside, every time is seconds from the start.
 */

import type { Meta } from "./page";

/** Steps between labels of an axis, in seconds: each divides the next unit of the clock. */
const STEPS = [
  0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800,
  604_800, 1_209_600, 2_419_200,
];
const DAY = 86_400;
/** By number, as dates have them: a formatter made for each label would be a sixth of a step of a zoom. */
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

type Known = Pick<Meta, "start_unix_ms" | "offsets" | "last_day" | "last_year" | "offset_s">;

export class Clock {
  /** Seconds since 1970; without a wall clock, what an offset counts from. */
  readonly #start: number;
  /** From which second on the clock shows so many seconds more; in order, and never empty. */
  readonly #ahead: readonly { from: number; seconds: number }[];
  readonly #lastDay: Known["last_day"];
  readonly #lastYear: Known["last_year"];
  readonly isOfTheWall: boolean;

  constructor(known: Known) {
    this.isOfTheWall = known.start_unix_ms !== null;
    this.#start = known.start_unix_ms === null ? known.offset_s : known.start_unix_ms / 1000;
    const changes = known.offsets.map(([from, seconds]) => ({ from, seconds }));
    this.#ahead = changes.length > 0 ? changes : [{ from: 0, seconds: 0 }];
    this.#lastDay = known.last_day;
    this.#lastYear = known.last_year;
  }

  /** By how many seconds second 0 is later than another clock's. */
  since(other: Clock): number {
    return this.isOfTheWall === other.isOfTheWall ? this.#start - other.#start : 0;
  }

  /** A moment, to the second: `02:23:33`, with its day where that is not the last sample's; of a capture `0:24`. */
  moment(at: number): string {
    return this.#moment(at, this.#namesDay(at));
  }

  /** From one moment to another: `0:11–0:34`. */
  range(from: number, to: number): string {
    const namesDay = this.#namesDay(from) || this.#namesDay(to);
    const [first, last] = [this.#moment(from, namesDay), this.#moment(to, namesDay)];
    return first === last ? first : `${first}–${last}`;
  }

  #moment(at: number, namesDay: boolean): string {
    if (!this.isOfTheWall) return offset(this.#start + at);
    const text = this.#shown(at).toISOString().slice(11, 19);
    return namesDay ? `${this.#day(at)} ${text}` : text;
  }

  #namesDay(at: number): boolean {
    return this.#lastDay === null || Math.floor(this.#shown(at).getTime() / (DAY * 1000)) !== this.#lastDay;
  }

  /** `Nov 21`; with its year where that is not the last sample's: `2026-11-21`. */
  #day(at: number): string {
    const date = this.#shown(at);
    if (date.getUTCFullYear() !== this.#lastYear) return date.toISOString().slice(0, 10);
    return `${MONTHS[date.getUTCMonth()]} ${date.getUTCDate()}`;
  }

  /** What the clock shows: seconds since 1970 as if it were UTC. */
  #local(at: number): number {
    const since = this.#ahead.filter(({ from }) => from <= at + 1e-6).at(-1) ?? this.#ahead[0];
    return this.#start + at + (since?.seconds ?? 0);
  }

  #shown(at: number): Date {
    return new Date(Math.round(this.#local(at) * 1000));
  }

  /** A label of an axis whose labels are `step` apart. */
  label(at: number, step: number): string {
    if (!this.isOfTheWall) return step < 1 ? `${(this.#start + at).toFixed(1)} s` : offset(this.#start + at);
    const date = this.#shown(at);
    const isMidnight = (this.#local(at) + 1e-4) % DAY < 1e-3;
    if (step >= DAY || (isMidnight && step >= 60)) {
      return `${WEEKDAYS[date.getUTCDay()]} ${date.getUTCDate()}`;
    }
    if (step < 1) return date.toISOString().slice(14, 21);
    return date.toISOString().slice(11, step < 60 ? 19 : 16);
  }

  /** Where an axis of `width` pixels has labels, each at least `space` pixels from the next, on round times of the clock. */
  splits(from: number, to: number, width: number, space: number): { at: number[]; step: number } {
    const least = ((to - from) / Math.max(width, 1)) * space;
    const step = STEPS.find((step) => step >= least) ?? Math.ceil(least / DAY) * DAY;
    const at: number[] = [];
    this.#ahead.forEach((since, index) => {
      const zero = this.#start + since.seconds;
      const first = zero + (index === 0 ? from : Math.max(from, since.from));
      const last = zero + Math.min(to, this.#ahead[index + 1]?.from ?? Infinity);
      for (let i = Math.ceil(first / step - 1e-6); i * step <= last + 1e-6; i++) {
        // Where the clock changes, two round times can stand too close together.
        if (i * step - zero - (at.at(-1) ?? -Infinity) >= least - 1e-6) at.push(i * step - zero);
      }
    });
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
