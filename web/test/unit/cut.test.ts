import { describe, expect, test } from "vitest";

import { cut } from "../../src/cut";
import type { Level } from "../../src/data";
import { Levels, type Picture } from "../../src/levels";
import { random } from "./pack";

const ROWS = 10_000;
const times = Float64Array.from({ length: ROWS }, (_, row) => row);

const none = new Uint8Array(ROWS);

function picture(values: Float64Array, broken = none): Picture {
  return { key: "0", times, broken, columns: [{ mean: values, min: null, max: null }, null] };
}

const whole = { from: 0, to: ROWS };

describe("what is in view", () => {
  test("is itself where there is a pixel for each row, with one more on either side", () => {
    const part = cut(picture(times), { from: 100, to: 120 }, 500, true);
    expect([part.times[0], part.times.at(-1)]).toEqual([99, 121]);
    expect(part.columns[0]?.max).toBeNull();
    expect(part.columns[1]).toBeNull();
  });

  test("has not more rows than pixels, and a peak of one sample at any zoom", () => {
    for (const peak of [0, 1, 4_999, 9_999]) {
      const values = new Float64Array(ROWS).fill(1);
      values[peak] = 1_000;
      for (let from = 0; from <= peak; from += 1_234) {
        const part = cut(picture(values), { from, to: ROWS }, 300, true);
        expect(part.times.length).toBeLessThanOrEqual(302);
        expect(Math.max(...(part.columns[0]?.max ?? part.columns[0]?.mean ?? []))).toBe(1_000);
      }
    }
  });

  test("keeps means, and what was not measured stays missing", () => {
    const next = random(5);
    const values = Float64Array.from({ length: ROWS }, (_, row) => (row >= 4_000 && row < 6_000 ? NaN : next()));
    const { columns } = cut(picture(values), whole, 400, true);
    const mean = columns[0]?.mean ?? new Float64Array();
    expect(mean.slice(170, 230).every((value) => Number.isNaN(value))).toBe(true);
    mean.forEach((value, row) => {
      if (Number.isNaN(value)) return;
      expect(columns[0]?.min?.[row]).toBeLessThanOrEqual(value);
      expect(columns[0]?.max?.[row]).toBeGreaterThanOrEqual(value);
    });
  });

  test("does not join what a gap parts", () => {
    const broken = Uint8Array.from(none);
    broken[5_003] = 1;
    const part = cut(picture(times, broken), whole, 400, true);
    expect([...part.broken].filter((flag) => flag === 1)).toHaveLength(1);
  });

  test("has the same rows together wherever it begins", () => {
    const ends = (from: number) => [...cut(picture(times), { from, to: from + 4_000 }, 300, true).times];
    const [one, other] = [ends(1_000), new Set(ends(1_003))];
    expect(one.slice(2, -2).every((time) => other.has(time))).toBe(true);
  });
});

describe("a stretch drawn finely amid coarse rows", () => {
  const minutes = Float64Array.from({ length: 160 }, (_, row) => (row + 1) * 60);
  const seconds = Float64Array.from({ length: 3_601 }, (_, row) => 3_010 + row);
  const level = (times: Float64Array, value: (at: number) => number): Level => {
    const mean = times.map(value);
    return { from: times[0] ?? 0, to: times.at(-1) ?? 0, times, charts: [[{ mean, min: null, max: null }]] };
  };
  /** Nothing outside but peaks of a minute; 100 inside. */
  const peaks = [600, 3_060, 6_660, 9_000];
  const coarse = level(minutes, (at) => (peaks.includes(at) ? 1_000 : 0));
  const levels = new Levels([coarse, level(seconds, () => 100)]);
  const view = { from: 0, to: 9_600 };
  const joined = levels.picture(0, view);
  const part = cut(joined, view, 900, true);
  const [column] = part.columns;
  const rows = [...part.times].map((at, row) => ({ at, value: column?.mean[row] ?? NaN, most: column?.max?.[row] ?? NaN }));

  test("does not coarsen what stands beside it", () => {
    expect(rows.filter(({ at }) => at < 3_000).map(({ at }) => at)).toEqual([...minutes].filter((at) => at < 3_000));
    expect(rows.filter(({ at }) => at > 3_020 && at < 6_600).length).toBeGreaterThan(300);
  });

  test("keeps every peak outside of it, that of the row in which it begins, too", () => {
    const seen = rows.filter(({ most }) => most === 1_000).map(({ at }) => at);
    // In the pixel of the second one the fine rows begin.
    expect(seen).toEqual([600, 3_018, 6_660, 9_000]);
  });

  test("does not mix with its neighbours but in the pixel of its edge", () => {
    const mixed = rows.filter(({ value }) => ![0, 100, 1_000].includes(value)).map(({ at }) => at);
    expect(mixed).toEqual([3_018]);
  });

  test("weighs a row by how long it is, not by how many there are", () => {
    // A minute of 1,000 and five seconds of 100 in one pixel of 200 s; the row before is another pixel's.
    const times = Float64Array.of(100, 340, 341, 342, 343, 344, 345);
    const mean = Float64Array.of(0, 1_000, 100, 100, 100, 100, 100);
    const one = { key: "0", times, broken: new Uint8Array(7), columns: [{ mean, min: null, max: null }] };
    const { columns } = cut(one, { from: 0, to: 400 }, 2, true);
    expect(columns[0]?.mean[1]).toBeCloseTo((240 * 1_000 + 5 * 100) / 245, 6);
  });

  test("a row behind a gap weighs no more than it was measured", () => {
    const times = Float64Array.of(1, 2, 950, 951);
    const mean = Float64Array.of(0, 0, 100, 0);
    const broken = Uint8Array.of(0, 0, 1, 0);
    const { columns } = cut({ key: "0", times, broken, columns: [{ mean, min: null, max: null }] }, { from: 0, to: 1_000 }, 1, true);
    expect(columns[0]?.mean[0]).toBe(25);
  });
});
