import { describe, expect, test } from "vitest";

import type { Column, Level } from "../../src/data";
import { before, Levels, nearest } from "../../src/levels";
import { edges } from "../../src/stack";

function level(from: number, to: number, step: number, isReduced: boolean, value = 1): Level {
  const rows = Math.floor((to - from) / step) + 1;
  const times = Float64Array.from({ length: rows }, (_, row) => from + row * step);
  const mean = new Float64Array(rows).fill(value);
  const column: Column = { mean, min: isReduced ? mean : null, max: isReduced ? mean : null };
  return { from, to, times, charts: [[column]] };
}

const WEEK = 604_800;
const coarse = level(0, WEEK, 400, true, 1);
const minutes = level(0, WEEK, 60, true, 2);
const sharp = level(300_000, 303_000, 1, false, 3);
const levels = new Levels([coarse, minutes, sharp]);

const drawn = (from: number, to: number) => levels.picture(0, { from, to });
const values = (from: number, to: number) => new Set(drawn(from, to).columns[0]?.mean);

describe("the level that is drawn", () => {
  test("is coarse for the whole range", () => {
    expect(values(0, WEEK)).toEqual(new Set([1]));
  });

  test("is the finest that covers the view and is not too much for a screen", () => {
    expect(values(0, 86_400)).toEqual(new Set([2]));
    expect(values(300_100, 302_000)).toEqual(new Set([3]));
  });

  test("is coarse around a fine one that covers part of the view", () => {
    const { times, columns } = drawn(298_000, 304_000);
    expect(new Set(columns[0]?.mean)).toEqual(new Set([2, 3]));
    expect([...times]).toEqual([...times].sort((a, b) => a - b));
    expect(new Set(times).size).toBe(times.length);
  });

  test("ignores a fine one that covers hardly any of the view", () => {
    expect(values(280_000, 340_000)).toEqual(new Set([2]));
  });

  test("falls back to a level that tells the chart", () => {
    const bare = { ...sharp, charts: [[null]] };
    const picture = new Levels([coarse, minutes, bare]).picture(0, { from: 300_100, to: 302_000 });
    expect(new Set(picture.columns[0]?.mean)).toEqual(new Set([2]));
  });
});

test("a stretch that is added is drawn, and the last few stay", () => {
  const grown = new Levels([coarse, minutes]);
  const at = (from: number) => new Set(grown.picture(0, { from: from + 100, to: from + 900 }).columns[0]?.mean);
  const key = () => grown.picture(0, { from: 100, to: 900 }).key;
  const before = key();
  for (let part = 0; part < 12; part++) {
    const from = part * 2_000;
    expect(at(from)).toEqual(new Set([2]));
    grown.add({ ...level(0, 1_000, 1, false, 3), from, to: from + 1_000, times: Float64Array.from({ length: 1_001 }, (_, row) => from + row) });
    expect(at(from)).toEqual(new Set([3]));
  }
  expect(at(0)).toEqual(new Set([2]));
  expect(at(22_000)).toEqual(new Set([3]));
  expect(key()).toBe(before);
});

test("a pinned moment is told by the finest level that knows it", () => {
  expect(levels.finestAt(0, 301_000).columns[0]?.mean[0]).toBe(3);
  expect(levels.finestAt(0, 1_000).columns[0]?.mean[0]).toBe(2);
});

test("an axis fits the peaks of all levels", () => {
  expect(levels.extent(0, 0)).toEqual({ from: 1, to: 3 });
});

test("rows are found by time", () => {
  const times = Float64Array.of(0, 1, 2.5, 10);
  expect([-1, 0, 0.4, 0.6, 5, 99].map((at) => nearest(times, at))).toEqual([0, 0, 0, 1, 2, 3]);
  expect(before(times, 2)).toBe(2);
  expect(nearest(new Float64Array(), 1)).toBe(-1);
});

describe("a stack", () => {
  const column = (...mean: number[]): Column => ({ mean: Float64Array.from(mean), min: null, max: null });
  const times = Float64Array.of(0, 1, 2);

  test("adds up from the bottom", () => {
    const sums = edges({ times, columns: [column(1, 2, 3), column(10, 20, 30)] }, () => true);
    expect(sums.map((edge) => [...edge])).toEqual([
      [1, 2, 3],
      [11, 22, 33],
    ]);
  });

  test("has a gap only where nothing was measured at all", () => {
    const sums = edges({ times, columns: [column(1, NaN, NaN), column(10, 20, NaN)] }, () => true);
    expect(sums.map((edge) => [...edge])).toEqual([
      [1, NaN, NaN],
      [11, 20, NaN],
    ]);
  });

  test("leaves limits out", () => {
    const sums = edges({ times, columns: [column(1, 1, 1), column(9, 9, 9)] }, (series) => series === 0);
    expect([...(sums[1] ?? [])]).toEqual([1, 1, 1]);
  });
});
