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
  const looking = () => new Looking(whole, 24, 4);

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
    const link = { view: { from: 12.5, to: 30 }, cursor: 18.123, theme: "dark" };
    expect(writeLink(link)).toBe("#v=12.5-30&c=18.123&theme=dark");
    expect(readLink(writeLink(link))).toEqual(link);
  });

  test("of the page as it opens is empty", () => {
    expect(writeLink({ view: null, cursor: null, theme: null })).toBe("");
  });

  test("that is wrong says nothing", () => {
    for (const hash of ["#v=30-12", "#v=a-b", "#c=-1", "#c=1e9x", "#finding-0", "#v=1-", ""]) {
      const { view, cursor } = readLink(hash);
      expect([view, cursor], hash).toEqual([null, null]);
    }
  });
});
