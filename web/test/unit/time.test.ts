import { expect, test } from "vitest";

import { Clock, offset } from "../../src/time";

const start = Date.UTC(2026, 10, 21, 2, 23, 9);
const wall = (span_s: number) => new Clock({ start_unix_ms: start, utc_offset_min: 540, span_s });
const capture = new Clock({ start_unix_ms: null, utc_offset_min: null, span_s: 39 });

test("a moment is the host's own clock, with its day where the range has several", () => {
  expect(wall(40).moment(24.4)).toBe("11:23:33");
  expect(wall(86_400).moment(24)).toBe("Nov 21 11:23:33");
});

test("without a wall clock a moment counts from the first sample", () => {
  expect([0, 11, 61.4, 3723].map((at) => capture.moment(at))).toEqual(["0:00", "0:11", "1:01", "1:02:03"]);
  const cut = new Clock({ start_unix_ms: null, utc_offset_min: null, offset_s: 60, span_s: 39 });
  expect(cut.moment(5)).toBe("1:05");
  expect(offset(59.6)).toBe("1:00");
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
