import { expect, test } from "vitest";

import type { Meta } from "../../src/page";
import { layout, namesAlike } from "../../src/sides";

const week = { span_s: 604_800, worst_s: 300_000 };
const minute = { span_s: 60, worst_s: 20 };

test("sources of like length stand beside each other from their beginnings", () => {
  const { whole, view, ahead, range } = layout([week, minute], week, "beginnings");
  expect([whole, view, ahead(minute)]).toEqual([{ from: 0, to: 604_800 }, whole, 0]);
  expect(range(minute)).toEqual(whole);
});

test("of a week and a minute, a minute of each is shown, by the clock of the one that opens", () => {
  const { whole, view, ahead, range } = layout([week, minute], week, "moments");
  expect(view).toEqual({ from: 299_980, to: 300_040 });
  expect([whole, ahead(week), ahead(minute)]).toEqual([{ from: 0, to: 604_800 }, 0, -299_980]);
  expect(range(minute)).toEqual({ from: 0, to: 60 });
  const other = layout([week, minute], minute, "moments");
  expect([other.view, other.ahead(week)]).toEqual([{ from: 0, to: 60 }, 299_980]);
  expect(other.whole).toEqual({ from: -299_980, to: 304_820 });
});

test("of one source nothing is moved", () => {
  expect(layout([minute], minute, "moments")).toMatchObject({ view: { from: 0, to: 60 }, whole: { from: 0, to: 60 } });
});

test("a name has one place on both sides, wherever it stands on each", () => {
  const series = (labels: string[]) => labels.map((label) => ({ label, is_alike: label !== "MemTotal" }));
  const side = (labels: string[]) => ({ charts: [{ id: "services", series: series(labels) }] }) as unknown as Meta;
  const names = namesAlike([side(["init", "rec", "stk", "MemTotal"]), side(["init", "stk", "web", "rec"])]);
  expect(names.get("services")).toEqual(["init", "rec", "stk", "web"]);
});
