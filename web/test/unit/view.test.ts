import { beforeAll, describe, expect, test } from "vitest";

import { clamped, Looking, readLink, writeLink } from "../../src/view";

beforeAll(() => {
  globalThis.requestAnimationFrame = () => 1;
  globalThis.cancelAnimationFrame = () => undefined;
});

const whole = { from: 0, to: 100 };

test("a view stays inside the range and is never too short", () => {
  expect(clamped({ from: -10, to: 50 }, whole, 4)).toEqual({ from: 0, to: 50 });
  expect(clamped({ from: 50, to: 51 }, whole, 4)).toEqual({ from: 48.5, to: 52.5 });
  expect(clamped({ from: 99.5, to: 100 }, whole, 4)).toEqual({ from: 96, to: 100 });
  expect(clamped({ from: -5, to: 500 }, whole, 4)).toEqual(whole);
  expect(clamped({ from: 0, to: 1 }, { from: 0, to: 2 }, 4)).toEqual({ from: 0, to: 2 });
});

describe("looking", () => {
  const looking = () => new Looking({ whole, view: whole, worst: 24, least: 4 });

  test("opens on the worst moment of the whole range", () => {
    const it = looking();
    expect([it.cursor, it.isAtWorst, it.isWhole, it.pinned]).toEqual([24, true, true, null]);
  });

  test("zooms around the cursor and back", () => {
    const it = looking();
    it.zoom(0.5);
    expect(it.view).toEqual({ from: 12, to: 62 });
    it.zoom(2);
    expect(it.view).toEqual(whole);
  });

  test("keeps its length at the ends of the range", () => {
    const it = looking();
    it.show(80, 100);
    it.pan(5);
    expect(it.view).toEqual({ from: 80, to: 100 });
    it.zoom(2);
    expect(it.view.to - it.view.from).toBe(40);
  });

  test("hovers without losing the pin", () => {
    const it = looking();
    it.pin(30);
    it.hover(70);
    expect([it.cursor, it.isHovering]).toEqual([70, true]);
    it.hover(null);
    expect(it.cursor).toBe(30);
    it.pinWorst();
    expect(it.isAtWorst).toBe(true);
  });

  test("is one view and one cursor by two clocks", () => {
    const it = looking();
    const other = it.ahead(-1000);
    expect([other.cursor, other.isAtWorst, other.whole]).toEqual([-976, true, { from: -1000, to: -900 }]);
    other.show(-990, -970);
    other.pin(-980);
    expect([it.view, it.cursor]).toEqual([{ from: 10, to: 30 }, 20]);
    other.hover(-975);
    expect([it.cursor, it.isHovering]).toEqual([25, true]);
    other.pinWorst();
    expect([it.cursor, it.isAtWorst]).toEqual([24, true]);
  });

  describe("at newer data", () => {
    const opening = (to: number, worst: number) => ({ whole: { from: 0, to }, view: { from: 0, to }, worst, least: 4 });

    test("stays at the whole range and at the worst moment", () => {
      const it = looking();
      it.reopen(opening(110, 105), 0, 1);
      expect([it.view, it.cursor, it.isAtWorst, it.finding]).toEqual([{ from: 0, to: 110 }, 105, true, 1]);
    });

    test("keeps moments, at fewer seconds where the beginning is later", () => {
      const it = looking();
      it.show(40, 60);
      it.pin(50);
      it.hover(55);
      it.reopen(opening(100, 7), 30, 0);
      expect([it.view, it.cursor, it.isHovering]).toEqual([{ from: 10, to: 30 }, 25, true]);
      it.hover(null);
      expect([it.cursor, it.isAtWorst, it.whole]).toEqual([20, false, { from: 0, to: 100 }]);
    });

    test("keeps the length of a view that was forgotten, as far as there is so much", () => {
      const it = looking();
      it.show(10, 30);
      it.pin(20);
      it.reopen(opening(100, 7), 25, 0);
      expect([it.view, it.cursor]).toEqual([{ from: 0, to: 20 }, 0]);
      it.reopen(opening(15, 7), 90, 0);
      expect(it.view).toEqual({ from: 0, to: 15 });
    });

    test("says so to all, by their clocks", () => {
      const it = looking();
      const other = it.ahead(1000);
      const heard: string[][] = [];
      other.onChange((changed) => heard.push([...changed].sort()));
      it.reopen(opening(50, 10), 0, 0);
      it.flush();
      expect(heard).toEqual([["cursor", "finding", "view"]]);
      expect([other.whole, other.cursor, other.isAtWorst]).toEqual([{ from: 1000, to: 1050 }, 1010, true]);
    });
  });

  test("hides several curves together, and shows all of them again", () => {
    const it = looking();
    it.toggle("where.free");
    it.toggle("where.anon");
    expect([...it.hidden]).toEqual(["where.free", "where.anon"]);
    it.toggle("where.free", "where.pcp");
    expect([...it.hidden]).toEqual(["where.anon"]);
    it.toggle("where.free", "where.pcp");
    expect([...it.hidden]).toEqual(["where.anon", "where.free", "where.pcp"]);
  });

  test("tells all changes of a frame at once", () => {
    const it = looking();
    const heard: string[][] = [];
    it.onChange((changed) => heard.push([...changed].sort()));
    it.show(1, 50);
    it.pin(3);
    it.flush();
    it.flush();
    expect(heard).toEqual([["cursor", "view"]]);
  });
});

describe("a link", () => {
  test("says what is looked at and is read back", () => {
    const before = { view: { from: -12.5, to: -3 }, cursor: -4, hidden: [], theme: null };
    expect(readLink(writeLink(before))).toEqual(before);
    const link = { view: { from: 12.5, to: 30 }, cursor: 18.123, hidden: ["where.free", "where.pcp"], theme: "dark" };
    expect(writeLink(link)).toBe("#v=12.5-30&c=18.123&h=where.free,where.pcp&theme=dark");
    expect(readLink(writeLink(link))).toEqual(link);
  });

  test("of the page as it opens is empty", () => {
    expect(writeLink({ view: null, cursor: null, hidden: [], theme: null })).toBe("");
  });

  test("without a curve hides none, and to a place of the page leaves all as it is", () => {
    for (const [hash, hidden] of [["", []], ["#v=60-120", []], ["#h=cpu.all", ["cpu.all"]], ["#recorded", null]] as const) {
      expect(readLink(hash).hidden, hash).toEqual(hidden);
    }
  });

  test("that is wrong says nothing", () => {
    for (const hash of ["#v=30-12", "#v=a-b", "#c=--1", "#c=1e9x", "#finding-0", "#v=1-", ""]) {
      const { view, cursor } = readLink(hash);
      expect([view, cursor], hash).toEqual([null, null]);
    }
  });
});
