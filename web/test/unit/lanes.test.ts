import { describe, expect, test } from "vitest";

import { eventLane, findingBars } from "../../src/lanes";
import { tints } from "../../src/marks";
import type { Finding, HostEvent, Stretch } from "../../src/page";

const same = (at: number) => at;
const widthOf = (text: string) => text.length * 6;
const event = (at_s: number, text = "event", is_main = true): HostEvent => ({ at_s, text, is_main });

describe("events under the navigator", () => {
  test("have labels that cover neither each other nor marks", () => {
    const events = [event(10, "first page swapped out"), event(60, "hog 2"), event(300, "all running"), event(590, "gone")];
    const { labels } = eventLane(events, same, 600, widthOf);
    const spans = labels.map((label) => [label.x, label.x + widthOf(label.text)] as const).sort((a, b) => a[0] - b[0]);
    spans.forEach(([from], index) => {
      if (index > 0) expect(from).toBeGreaterThanOrEqual(spans[index - 1]?.[1] ?? 0);
    });
    for (const [from, to] of spans) {
      expect(from).toBeGreaterThanOrEqual(0);
      expect(to).toBeLessThanOrEqual(600);
      for (const { at_s } of events) expect(at_s < from || at_s > to, `mark at ${at_s}`).toBe(true);
    }
    expect(labels.find((label) => label.text === "gone")?.isLeft).toBe(true);
  });

  test("are counted where they are crowded", () => {
    const crowd = Array.from({ length: 23 }, (_, index) => event(200 + index * 4, "kill", index === 0));
    const { ticks, crowds, labels } = eventLane([event(10), ...crowd], same, 600, widthOf);
    expect(crowds.map((one) => [one.x, one.events.length])).toEqual([[200, 23]]);
    expect(ticks.length).toBe(1);
    expect(labels.length).toBe(1);
  });

  test("have texts whole where there is room, else ended after a word", () => {
    const text = "/app hit its limit of 96 MiB, 53 times in 2 s";
    const shown = (width: number) => eventLane([event(5, text)], same, width, widthOf).labels.map((label) => label.text);
    expect(shown(600)).toEqual([text]);
    expect(shown(widthOf(text))).toEqual(["/app hit its limit of 96 MiB, 53 times …"]);
    expect(shown(100)).toEqual([]);
    const long = eventLane([event(5, "word ".repeat(800))], same, 2000, widthOf);
    expect(long.labels[0]?.text.length).toBeLessThanOrEqual(102);
  });
});

describe("bars of findings", () => {
  const bar = (index: number, from: number, to: number) => ({ index, stretches: [[from, to]] as Stretch[], texts: ["swap-thrash"] });

  test("share a row unless they overlap", () => {
    const bars = findingBars([bar(0, 0, 200), bar(1, 100, 400), bar(2, 300, 500)], same, 600, widthOf);
    expect(bars.map((one) => one.row)).toEqual([0, 1, 0]);
  });

  test("that are short are seen and have their text beside them", () => {
    const [early, late] = findingBars([bar(0, 10, 11), bar(1, 599, 600)], same, 600, widthOf);
    expect(early).toMatchObject({ width: 6, place: "outside", row: 0 });
    expect(late).toMatchObject({ x: 594, place: "outside", row: 0 });
  });

  test("that come again lie in one row, with the name at the widest; those that would touch are one", () => {
    const nights: Stretch[] = [[10, 11], [100, 101], [104, 110], [300, 302]];
    const bars = findingBars([{ index: 0, stretches: nights, texts: ["dirty"] }, bar(1, 300, 400)], same, 600, widthOf);
    expect(bars.map(({ x, width, row, place }) => [x, width, row, place])).toEqual([
      [10, 6, 0, "none"],
      [100, 10, 0, "outside"],
      [300, 6, 0, "none"],
      [300, 100, 1, "inside"],
    ]);
  });
});

describe("tints", () => {
  const finding = (from_s: number | null, to_s: number | null): Finding => ({
    severity: "critical",
    id: "x",
    subject: null,
    title: "x",
    from_s,
    to_s,
    stretches: from_s === null || to_s === null ? [] : [[from_s, to_s]],
    charts: [], is_root: true,
  });
  const findings = [finding(10, 20), finding(15, 30), finding(40, 50), finding(null, null)];
  const chosen = (evidenceOf: number[], selected: number) =>
    tints(findings, evidenceOf, selected).map((tint) => [tint.stretches[0]?.[0], tint.isEvidence]);

  test("never overlap: the selected finding comes first", () => {
    expect(chosen([], 0)).toEqual([[10, false], [40, false]]);
    expect(chosen([], 1)).toEqual([[15, false], [40, false]]);
  });

  test("say which findings a chart proves", () => {
    expect(chosen([0, 2], 0)).toEqual([[10, true], [40, true]]);
  });

  test("shade every time at which a finding held, unless another has it", () => {
    const nightly: Finding = { ...finding(10, 20), stretches: [[10, 20], [40, 50], [60, 70]] };
    const shades = tints([finding(45, 48), nightly], [], 0);
    expect(shades.map((tint) => tint.stretches)).toEqual([[[45, 48]], [[10, 20], [60, 70]]]);
  });
});

test("a name never lies under another bar of its finding", () => {
  const nights = [10, 40, 70].map((at): [number, number] => [at, at + 1]);
  const bars = findingBars([{ index: 0, stretches: nights, texts: ["dirty-throttle"] }], (at) => at, 200, () => 60);
  expect(bars.map((bar) => bar.place)).toEqual(["none", "none", "outside"]);
  const narrow = findingBars([{ index: 0, stretches: nights, texts: ["dirty-throttle"] }], (at) => at, 90, () => 60);
  expect(narrow.map((bar) => bar.place)).toEqual(["none", "none", "none"]);
});

test("a bar has the longest name for which there is room, and stays where there is room for none", () => {
  const texts = ["oom-cgroup · /shop", "oom-cgroup"];
  const named = (width: number) => findingBars([{ index: 0, stretches: [[10, 11]], texts }], same, width, widthOf)[0]?.text;
  expect([named(300), named(100), named(40)]).toEqual(["oom-cgroup · /shop", "oom-cgroup", ""]);
  const crowd = Array.from({ length: 5 }, (_, index) => ({ index, stretches: [[20 * index, 20 * index + 1]] as Stretch[], texts }));
  const bars = findingBars(crowd, same, 300, widthOf);
  expect(bars.map(({ finding }) => finding)).toEqual([0, 1, 2, 3, 4]);
});
