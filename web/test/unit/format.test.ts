import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

import { NBSP, number, range, share, tick, value } from "../../src/format";
import type { Unit } from "../../src/page";

interface Case {
  unit: Unit;
  value: number;
  text: string;
}

// Written by the crate that prints all other numbers of the page.
const fixture = new URL("../../../crates/units/tests/formats.json", import.meta.url);
const UNITS: readonly Unit[] = ["bytes", "bytes/s", "pages/s", "count/s", "share", "ms"];
const cases = (JSON.parse(readFileSync(fixture, "utf8")) as Case[]).filter((one) => UNITS.includes(one.unit));

describe("values read as the units crate writes them", () => {
  test("there are cases for each unit", () => {
    expect(new Set(cases.map((one) => one.unit)).size).toBe(UNITS.length);
  });

  for (const unit of new Set(cases.map((one) => one.unit))) {
    test(unit, () => {
      const ours = cases
        .filter((one) => one.unit === unit)
        .map((one) => ({ ...one, text: value(one.value, unit).replaceAll(NBSP, " ") }));
      const theirs = cases
        .filter((one) => one.unit === unit)
        .map((one) => ({ ...one, text: one.text.replaceAll(NBSP, " ") }));
      expect(ours).toEqual(theirs);
    });
  }
});

test("a tie goes to the even digit, as in Rust", () => {
  expect([0.25, 0.75, 10.5, 11.5, 0.35].map(number)).toEqual(["0.2", "0.8", "10", "12", "0.3"]);
});

test("what was not measured is a dash, not 0", () => {
  expect(value(NaN, "bytes")).toBe("–");
  expect(share(NaN)).toBe("–");
});

test("an axis shows its values exactly", () => {
  const gib = 1024 ** 3;
  const ticks = [1, 1.25, 1.5, 1.125, 0].map((size) => tick(size * gib, "bytes"));
  expect(ticks.map((text) => text.replaceAll(NBSP, " "))).toEqual(["1 GiB", "1.25 GiB", "1.5 GiB", "1.125 GiB", "0 B"]);
  expect([tick(0.15000000000000002, "pages/s"), tick(0.25, "share")]).toEqual(["0.15/s", `25${NBSP}%`]);
});

test("a range names its unit once where it can", () => {
  const texts = [
    range(3.1 * 1024 ** 2, 28 * 1024 ** 2, "bytes/s"),
    range(512, 28 * 1024 ** 2, "bytes"),
    range(0, 28 * 1024 ** 2, "bytes"),
    range(5, 5, "pages/s"),
    range(0.1, 0.97, "share"),
    range(NaN, 1, "share"),
  ];
  expect(texts.map((text) => text.replaceAll(NBSP, " "))).toEqual([
    "3.1–28 MiB/s",
    "512 B–28 MiB",
    "0–28 MiB",
    "5 pages/s",
    "10–97 %",
    "–",
  ]);
});

test("only nothing is 0 %", () => {
  expect([0, 0.001, 0.0049, 0.005, 1].map((part) => share(part).replaceAll(NBSP, " "))).toEqual([
    "0 %",
    "<1 %",
    "<1 %",
    "1 %",
    "100 %",
  ]);
});
