/**
 * Human-readable numbers: the same rules as the `units` crate, which writes all other numbers of the page; a fixture
 * written by that crate keeps both the same.
 */

import type { Unit } from "./page";

/** Between a number and its unit, so that they stay on one line. */
export const NBSP = "\u00a0";

/** Three significant digits at most, and a comma between groups of three: `1.5`, `12`, `0.03`, `11,900`. */
export function number(value: number): string {
  const size = Math.abs(value);
  if (size === 0 || size >= 9.95) return grouped(value);
  if (size >= 0.095) return fixed(value, 1).replace(/\.0$/, "");
  if (size >= 0.0095) return fixed(value, 2);
  if (size >= 0.00095) return fixed(value, 3);
  return value < 0 ? "-0" : "about 0";
}

function grouped(value: number): string {
  const digits = fixed(Math.abs(value), 0).replace(/\B(?=(\d{3})+$)/g, ",");
  return value < -0.5 ? `-${digits}` : digits;
}

/** Like toFixed, but a tie goes to the even digit, as in Rust. Only such a value is a tie: one of few binary places. */
function fixed(value: number, places: number): string {
  const scaled = value * 10 ** places;
  const isTie = Number.isInteger(value * 2 ** (places + 1)) && Math.abs(scaled % 1) === 0.5;
  if (!isTie) return value.toFixed(places);
  const even = 2 * Math.round(scaled / 2);
  return (even / 10 ** places).toFixed(places);
}

const PREFIXES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** A size with its binary prefix, in two parts: `["6.2", "MiB"]`. */
function bytes(value: number, digits = number): [string, string] {
  if (!Number.isFinite(value)) return ["unlimited", ""];
  let prefix = 0;
  // 1023.5 would print as "1,024"; it is carried into the next prefix instead.
  while (Math.abs(value) >= 1023.5 && prefix + 1 < PREFIXES.length) {
    value /= 1024;
    prefix += 1;
  }
  return [digits(value), PREFIXES[prefix] ?? ""];
}

const TIMES: readonly [below: number, times: number, by: number, unit: string][] = [
  // What would be rounded up to the next unit is of that.
  [0.9995e-3, 1e6, 1, "µs"],
  [0.9995, 1e3, 1, "ms"],
  [119.5, 1, 1, "s"],
  [119.5 * 60, 1, 60, "min"],
  [47.5 * 3600, 1, 3600, "h"],
  [Infinity, 1, 86_400, "d"],
];

/** A length of time, given in seconds. */
export function seconds(value: number): string {
  return parts(...time(value));
}

function time(value: number): [string, string] {
  if (value === 0) return ["0", "s"];
  const [, times, by, unit] = TIMES.find(([below]) => Math.abs(value) < below) ?? [0, 1, 1, "s"];
  return [number((value * times) / by), unit];
}

/** Sizes and counts are whole numbers of 64 bits; half of one is rounded up. */
function whole(value: number): number {
  return Math.min(Math.floor(Math.abs(value) + 0.5), 2 ** 64);
}

function split(value: number, unit: Unit, exact = number): [string, string] {
  switch (unit) {
    case "bytes": {
      const [digits, prefix] = bytes(whole(value), exact);
      return [value < 0 ? `-${digits}` : digits, prefix];
    }
    case "bytes/s": {
      const [digits, prefix] = bytes(value, exact);
      return [digits, `${prefix}/s`];
    }
    case "share":
      return [exact(value * 100), "%"];
    case "pages/s":
      return [exact(value), "pages/s"];
    case "count/s":
      return [exact(value), "/s"];
    case "ms":
      return time(value / 1000);
  }
}

function parts(digits: string, unit: string): string {
  return unit === "" || unit.startsWith("/") ? digits + unit : digits + NBSP + unit;
}

/** A value in the unit of its chart: `6.2 MiB`; a dash where nothing was measured. */
export function value(value: number, unit: Unit): string {
  return Number.isNaN(value) ? "–" : parts(...split(value, unit));
}

/** From one value to another: `3.1–28 MiB/s`. */
export function range(min: number, max: number, unit: Unit): string {
  if (Number.isNaN(min) || Number.isNaN(max)) return "–";
  const [low, lowUnit] = split(min, unit);
  const [high, highUnit] = split(max, unit);
  if (low === high && lowUnit === highUnit) return parts(low, lowUnit);
  return lowUnit === highUnit || min === 0
    ? `${low}–${parts(high, highUnit)}`
    : `${parts(low, lowUnit)}–${parts(high, highUnit)}`;
}

/** All digits of a round number: `1.25`, where a measured value would be `1.2`. */
function exact(value: number): string {
  return Math.abs(value) < 1000 ? String(Number(value.toFixed(3))) : number(value);
}

/** A value on an axis. The word "pages" stands once, above the axis. */
export function tick(value: number, unit: Unit): string {
  const [digits, prefix] = split(value, unit, exact);
  return unit === "pages/s" ? digits + "/s" : parts(digits, prefix);
}

/** A part of a whole, where only nothing is 0: `<1 %`. */
export function share(ratio: number): string {
  if (Number.isNaN(ratio)) return "–";
  if (ratio > 0 && ratio < 0.005) return `<1${NBSP}%`;
  return Math.round(ratio * 100) + NBSP + "%";
}
