import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

import { Clock, offset } from "../../src/time";

const start = Date.UTC(2026, 10, 21, 2, 23, 9);
const wall = (span_s: number) =>
  new Clock({ start_unix_ms: start, offsets: [[0, 32_400]], last_day: span_s < DAY ? 20_778 : null, last_year: 2026, offset_s: 0 });
const DAY = 40_000;

interface Case {
  start_unix_ms: number | null;
  offsets: [number, number][];
  last_day: number | null;
  last_year: number | null;
  offset_s: number;
  moments: [number, string][];
  ranges: [number, number, string][];
}

describe("times read as in the text, which Rust wrote", () => {
  const cases = JSON.parse(readFileSync(new URL("../fixtures/moments.json", import.meta.url), "utf8")) as Case[];
  test("there are clocks that change, and sources without one", () => {
    expect(cases.some((one) => one.offsets.length > 1)).toBe(true);
    expect(cases.some((one) => one.start_unix_ms === null)).toBe(true);
  });

  test.each(cases.map((one, index) => [index, one] as const))("case %i", (_, one) => {
    const clock = new Clock(one);
    expect(one.moments.map(([at]) => [at, clock.moment(at)])).toEqual(one.moments);
    expect(one.ranges.map(([from, to]) => [from, to, clock.range(from, to)])).toEqual(one.ranges);
  });
});

test("an offset is rounded to the second", () => {
  expect(offset(59.6)).toBe("1:00");
});

describe("an axis over the end of summer time", () => {
  // Two hours from 00:30 UTC; at 01:00 UTC the clock goes from 03:00 back to 02:00.
  const clock = new Clock({
    start_unix_ms: Date.UTC(2026, 9, 25, 0, 30),
    offsets: [[0, 7200], [1800, 3600]],
    last_day: 20_751,
    last_year: 2026,
    offset_s: 0,
  });

  test("shows what the clock showed", () => {
    const { at, step } = clock.splits(0, 7200, 800, 84);
    expect(at.map((split) => clock.label(split, step))).toEqual([
      "02:30", "02:45", "02:00", "02:15", "02:30", "02:45", "03:00", "03:15", "03:30",
    ]);
  });

  test("keeps labels apart where a step is longer than the hour that comes twice", () => {
    for (let span = 3600; span < 1e6; span *= 1.7) {
      const { at } = clock.splits(0, span, 500, 84);
      at.slice(1).forEach((split, index) => expect(split - (at[index] ?? 0)).toBeGreaterThanOrEqual((span / 500) * 83.9));
    }
  });
});

test("an axis over a clock that was set shows what it showed", () => {
  // Without a battery it began in 1970; after half a minute the network told the time.
  const clock = new Clock({
    start_unix_ms: 39_000,
    offsets: [[0, 0], [30, 1_794_999_961]],
    last_day: 20_775,
    last_year: 2026,
    offset_s: 0,
  });
  const { at, step } = clock.splits(0, 60, 600, 84);
  expect(at.map((split) => clock.label(split, step))).toEqual([
    "00:00:40", "00:00:50", "00:01:00", "11:07:10", "11:07:20", "11:07:30", "11:07:40",
  ]);
  expect([clock.moment(0), clock.moment(31)]).toEqual(["1970-01-01 00:00:39", "11:07:11"]);
});

test("labels stand on round times of the clock", () => {
  const clock = wall(40);
  const { at, step } = clock.splits(0, 40, 600, 84);
  expect(step).toBe(10);
  expect(at.map((split) => clock.label(split, step))).toEqual(["11:23:10", "11:23:20", "11:23:30", "11:23:40"]);
});

test("a week has days, an hour has minutes, midnight is its day", () => {
  const week = wall(7 * 86_400);
  const days = week.splits(0, 7 * 86_400, 1200, 84);
  expect(days.step).toBe(43_200);
  expect(days.at.slice(0, 3).map((at) => week.label(at, days.step))).toEqual(["12:00", "Sun 22", "12:00"]);
  const hour = week.splits(0, 3600, 600, 84);
  expect(week.label(hour.at[0] ?? 0, hour.step)).toBe("11:30");
});

test("labels keep their distance at any zoom", () => {
  for (let span = 0.5; span < 1e8; span *= 3) {
    const { at, step } = wall(span).splits(0, span, 500, 84);
    expect((step / span) * 500).toBeGreaterThanOrEqual(83.9);
    expect(at.length).toBeLessThan(8);
  }
});
