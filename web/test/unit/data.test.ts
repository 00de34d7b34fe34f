import { readFileSync } from "node:fs";
import { deflateRawSync } from "node:zlib";
import { describe, expect, test } from "vitest";

import { Damaged, decode, inflate, type Level } from "../../src/data";
import type { Meta } from "../../src/page";
import { fromBase64 } from "../../src/source";
import { pack, random, type Table } from "./pack";

type Head = Pick<Meta, "levels" | "charts">;

const plain = (values: Float64Array | null) =>
  values === null ? null : [...values].map((value) => (Number.isNaN(value) ? null : value));

function told(levels: Level[]): unknown {
  return levels.map((level) => ({
    times: [...level.times],
    charts: level.charts.map((chart) =>
      chart.map((column) =>
        column === null ? null : { mean: plain(column.mean), min: plain(column.min), max: plain(column.max) },
      ),
    ),
  }));
}

test("what the writer packed is read as it was", async () => {
  const fixture = JSON.parse(readFileSync(new URL("../fixtures/packed.json", import.meta.url), "utf8")) as {
    meta: Head;
    base64: string;
    expected: unknown;
  };
  expect(told(decode(await inflate(fromBase64(fixture.base64)), fixture.meta))).toEqual(fixture.expected);
});

describe("any numbers", () => {
  for (let seed = 1; seed <= 40; seed++) {
    test(`come back, missing ones missing (${seed})`, async () => {
      const { head, tables } = anything(seed);
      const levels = decode(await inflate(new Uint8Array(deflateRawSync(pack(tables)))), head);
      levels.forEach((level, at) => {
        const table = tables[at];
        expect([...level.times]).toEqual(table?.times.map((ms) => ms / 1000));
        level.charts[0]?.forEach((column, series) => {
          const columns = table?.series[series] ?? [];
          const means = columns[0] ?? [];
          expect(column === null).toBe(columns.length === 0);
          if (column !== null) expect(plain(column.mean)).toEqual(means);
          expect(plain(column?.max ?? null)).toEqual(columns[2] ?? null);
        });
      });
    });
  }
});

function anything(seed: number): { head: Head; tables: Table[] } {
  const next = random(seed);
  const tables = Array.from({ length: 1 + Math.floor(next() * 3) }, (): Table => {
    const rows = Math.floor(next() * 60);
    let ms = 0;
    const column = () =>
      Array.from({ length: rows }, () =>
        next() < 0.2 ? null : Math.round((next() - 0.5) * 2 ** Math.floor(next() * 51)),
      ).map((value) => (value === null ? null : value + 0));
    return {
      times: Array.from({ length: rows }, () => (ms += Math.floor(next() * 5000))),
      series: Array.from({ length: 4 }, () => {
        const kind = next();
        return kind < 0.2 ? [] : kind < 0.6 ? [column()] : [column(), column(), column()];
      }),
    };
  });
  const head = {
    levels: tables.map((table) => ({ from_s: 0, to_s: 1, rows: table.times.length })),
    charts: [{ series: Array.from({ length: 4 }, () => ({ scale: 1 })) }],
  } as unknown as Head;
  return { head, tables };
}

describe("a page that was damaged on its way", () => {
  const { head, tables } = anything(7);
  const whole = pack(tables);

  test("is refused wherever it is cut", () => {
    for (let length = 0; length < whole.length; length++) {
      expect(() => decode(whole.subarray(0, length), head), `cut at ${length}`).toThrow(Damaged);
    }
  });

  test("is refused where something follows", () => {
    expect(() => decode(new Uint8Array([...whole, 0]), head)).toThrow(/more follows than was announced/);
  });

  test("never breaks the reader, whichever byte is flipped", () => {
    const next = random(3);
    for (let at = 0; at < whole.length; at++) {
      const flipped = Uint8Array.from(whole);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << Math.floor(next() * 8));
      try {
        const levels = decode(flipped, head);
        expect(levels.map((level) => level.times.length)).toEqual(head.levels.map((level) => level.rows));
      } catch (error) {
        expect(error).toBeInstanceOf(Damaged);
      }
    }
  });

  test("cannot ask for more rows than it has bytes", () => {
    const greedy = { ...head, levels: [{ from_s: 0, to_s: 1, rows: 1e15 }] };
    expect(() => decode(whole, greedy)).toThrow(/ends too early/);
  });

  test("is told in words where it cannot be unpacked", async () => {
    const packed = new Uint8Array(deflateRawSync(whole));
    await expect(inflate(packed.slice(0, packed.length / 2))).rejects.toThrow(/damaged/);
  });

  test("says so where the browser cannot unpack at all", async () => {
    const own = globalThis.DecompressionStream;
    Reflect.deleteProperty(globalThis, "DecompressionStream");
    try {
      await expect(inflate(new Uint8Array())).rejects.toThrow(/this browser cannot unpack/);
    } finally {
      globalThis.DecompressionStream = own;
    }
  });
});
