import { describe, expect, test } from "vitest";

import { breaks, merged } from "../../src/gaps";
import type { Gap } from "../../src/page";
import { random } from "./pack";

const gap = (from: number, to: number): Gap => [from, to, to - from];

/** As one would say it, and as slow. */
function plainly(times: Float64Array, gaps: readonly Gap[]): number[] {
  return [...times].map((at, row) => {
    const before = times[row - 1];
    return before !== undefined && gaps.some(([from, to]) => before < to && at > from) ? 1 : 0;
  });
}

describe("rows that do not follow from the one before", () => {
  test("are those behind a gap", () => {
    expect([...breaks(Float64Array.of(0, 1, 2, 10, 11), [gap(2, 10)])]).toEqual([0, 0, 0, 1, 0]);
  });

  test("may lie between two gaps, or hold one inside", () => {
    const gaps = [gap(0.2, 0.4), gap(0.6, 0.8), gap(1, 3), gap(3, 5)];
    expect([...breaks(Float64Array.of(0, 1, 3, 5, 6), gaps)]).toEqual([0, 1, 1, 1, 0]);
  });

  test("are the same as by comparing each with each", () => {
    for (let seed = 1; seed <= 200; seed++) {
      const next = random(seed);
      const moments = (count: number) => Array.from({ length: count }, () => Math.round(next() * 60)).sort((a, b) => a - b);
      const ends = [...new Set(moments(12))];
      const gaps = ends.flatMap((from, i) => (i % 2 === 0 && ends[i + 1] !== undefined ? [gap(from, ends[i + 1] ?? 0)] : []));
      const times = Float64Array.from(moments(30));
      expect([...breaks(times, gaps)], `seed ${seed}`).toEqual(plainly(times, gaps));
    }
  });

  test("are found in one pass: thousands of gaps and rows are no work", () => {
    const times = Float64Array.from({ length: 200_000 }, (_, row) => row * 3);
    const gaps = Array.from({ length: 100_000 }, (_, i) => gap(i * 6, i * 6 + 3));
    const begin = performance.now();
    breaks(times, gaps);
    // One by the other would be 2e10 comparisons.
    expect(performance.now() - begin).toBeLessThan(2_000);
  });
});

describe("gaps as drawn", () => {
  const many = Array.from({ length: 3_000 }, (_, i) => gap(i * 123, i * 123 + 120));

  test("are those in view", () => {
    const shown = merged(many, { from: 1_000, to: 2_000 }, 1);
    expect(shown[0]).toEqual(gap(984, 1_104));
    expect(shown.at(-1)).toEqual(gap(1_968, 2_088));
  });

  test("are one where nobody could tell them apart, and say what is missing", () => {
    expect(merged(many, { from: 0, to: 3_000 * 123 }, 10)).toEqual([[0, 2_999 * 123 + 120, 3_000 * 120]]);
  });

  test("stay as they are for the next view", () => {
    merged(many, { from: 0, to: 1e9 }, 1e9);
    expect(many[0]).toEqual(gap(0, 120));
  });
});
