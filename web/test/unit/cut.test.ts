import { describe, expect, test } from "vitest";

import { cut } from "../../src/cut";
import type { Picture } from "../../src/levels";
import { random } from "./pack";

const ROWS = 10_000;
const times = Float64Array.from({ length: ROWS }, (_, row) => row);

function picture(values: Float64Array): Picture {
  return { key: "0", isReduced: false, times, columns: [{ mean: values, min: null, max: null }, null] };
}

const none = new Uint8Array(ROWS);
const whole = { from: 0, to: ROWS };

describe("what is in view", () => {
  test("is itself where there is a pixel for each row, with one more on either side", () => {
    const part = cut(picture(times), none, { from: 100, to: 120 }, 500);
    expect([part.times[0], part.times.at(-1)]).toEqual([99, 121]);
    expect(part.columns[0]?.max).toBeNull();
    expect(part.columns[1]).toBeNull();
  });

  test("has not more rows than pixels, and a peak of one sample at any zoom", () => {
    for (const peak of [0, 1, 4_999, 9_999]) {
      const values = new Float64Array(ROWS).fill(1);
      values[peak] = 1_000;
      for (let from = 0; from <= peak; from += 1_234) {
        const part = cut(picture(values), none, { from, to: ROWS }, 300);
        expect(part.times.length).toBeLessThanOrEqual(302);
        expect(Math.max(...(part.columns[0]?.max ?? part.columns[0]?.mean ?? []))).toBe(1_000);
      }
    }
  });

  test("keeps means, and what was not measured stays missing", () => {
    const next = random(5);
    const values = Float64Array.from({ length: ROWS }, (_, row) => (row >= 4_000 && row < 6_000 ? NaN : next()));
    const { columns } = cut(picture(values), none, whole, 400);
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
    const part = cut(picture(times), broken, whole, 400);
    expect([...part.broken].filter((flag) => flag === 1)).toHaveLength(1);
  });

  test("has the same rows together wherever it begins", () => {
    const ends = (from: number) => [...cut(picture(times), none, { from, to: from + 4_000 }, 300).times];
    const [one, other] = [ends(1_000), new Set(ends(1_003))];
    expect(one.slice(2, -2).every((time) => other.has(time))).toBe(true);
  });
});
