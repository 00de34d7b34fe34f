import { expect, test } from "vitest";

import { Damaged } from "../../src/data";
import { placeAmong } from "../../src/findings";
import { excuse } from "../../src/notice";
import { CLOSER, split, splitCloser } from "../../src/server";
import { fromBase64, readMeta } from "../../src/source";
import { Clock } from "../../src/time";
import { PAGE } from "../fixtures/page";

const body = (text: string, ...bytes: number[]) => new Uint8Array([...new TextEncoder().encode(text), ...bytes]);

test("an answer is a line of JSON and the packed bytes, which may have newlines", () => {
  const { meta, packed } = split(body(`${JSON.stringify(PAGE)}\n`, 10, 0, 255, 10));
  expect(meta).toEqual(PAGE);
  expect([...packed]).toEqual([10, 0, 255, 10]);
  expect(split(body(`${JSON.stringify(PAGE)}\n`)).packed).toHaveLength(0);
});

test("an answer that was cut is refused wherever its head ends", () => {
  const whole = body(`${JSON.stringify(PAGE)}\n`);
  for (let length = 0; length < whole.length; length += 1 + (length >> 4)) {
    expect(() => split(whole.slice(0, length)), `cut at ${length}`).toThrow(Damaged);
  }
});

test("a part in full detail is of its contract", () => {
  const head = { format: CLOSER, level: { from_s: 1, to_s: 2, rows: 2 }, scales: [[1], []] };
  const [read, packed] = splitCloser(body(`${JSON.stringify(head)}\n`, 1, 2));
  expect(read).toEqual(head);
  expect([...packed]).toEqual([1, 2]);
  for (const wrong of [PAGE, { ...head, format: "memtide-closer/2" }, { ...head, scales: undefined }, null]) {
    expect(() => splitCloser(body(`${JSON.stringify(wrong)}\n`))).toThrow(Damaged);
  }
});

test("a head is of this contract and has all lists", () => {
  expect(readMeta(JSON.stringify(PAGE))).toEqual(PAGE);
  const wrong = ["", "null", "7", "[]", "{}", JSON.stringify({ ...PAGE, format: "memtide-page/2" })];
  for (const name of ["offsets", "levels", "gaps", "charts", "findings", "events"]) {
    wrong.push(JSON.stringify({ ...PAGE, [name]: undefined }), JSON.stringify({ ...PAGE, [name]: "" }));
  }
  for (const text of wrong) expect(() => readMeta(text), text.slice(0, 60)).toThrow(Damaged);
});

test("base64 may stand between blanks, and anything else is refused", () => {
  expect([...fromBase64(" AP8K\n")]).toEqual([0, 255, 10]);
  expect(() => fromBase64("%%%")).toThrow("the charts' data is damaged: it is not base64");
});

test("a finding is known again by its rule, and by its order where a rule has several", () => {
  const ids = (...all: string[]) => all.map((id) => ({ id }));
  const [before, after] = [ids("a", "b", "a"), ids("b", "c", "a", "a")];
  expect([0, 1, 2, 3, -1].map((index) => placeAmong(after, before, index))).toEqual([2, 0, 3, -1, -1]);
  expect([0, 1, 2, 3].map((index) => placeAmong(before, after, index))).toEqual([1, -1, 0, 2]);
});

test("second 0 of two clocks is compared on the wall, or from the first sample", () => {
  const at = (start_unix_ms: number | null, offset_s: number) => new Clock({ ...PAGE, start_unix_ms, offset_s });
  expect(at(1_700_000_012_500, 0).since(at(1_700_000_000_000, 9))).toBe(12.5);
  expect(at(null, 12.5).since(at(null, 10))).toBe(2.5);
  expect(at(1_700_000_000_000, 0).since(at(null, 0))).toBe(0);
});

test("what fails is said with what is shown, and whether it is tried again", () => {
  const plain = (text: string) => text.replaceAll("\u00a0", " ");
  expect(excuse("the data is damaged", null, null)).toBe(
    "No charts: the data is damaged. The text and the tables of this page are complete.",
  );
  expect(plain(excuse("the server answered 500", "02:23:33", 2.5))).toBe(
    "No new data: the server answered 500. The charts show what there was until 02:23:33. The page asks again every 2.5 s.",
  );
});
