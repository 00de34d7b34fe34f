import { readdirSync, readFileSync } from "node:fs";

import { describe, expect, test } from "vitest";

import { PAGE } from "../fixtures/page";
import { DATA, HEAP, SEVERITY, SURFACE, TINT, heapVariables, variables, type Pair } from "../../src/palette";

type Rgb = readonly [number, number, number];

const themes = ["light", "dark"] as const;
const side = { light: 0, dark: 1 } as const;

function linear(colour: string): Rgb {
  const channel = (at: number) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  };
  return [channel(1), channel(3), channel(5)];
}

const dot = (row: readonly number[], v: Rgb) => row.reduce((sum, factor, at) => sum + factor * (v[at] ?? 0), 0);
const times = (matrix: readonly (readonly number[])[], v: Rgb): Rgb =>
  matrix.map((row) => dot(row, v)) as unknown as Rgb;

/** Contrast as WCAG 2 defines it. */
function contrast(a: string, b: string): number {
  const light = (colour: string) => dot([0.2126, 0.7152, 0.0722], linear(colour)) + 0.05;
  const [x, y] = [light(a), light(b)];
  return Math.max(x, y) / Math.min(x, y);
}

/** How colours look to others: Machado, Oliveira, Fernandes 2009, severity 1. */
const SIGHTS: Record<string, readonly (readonly number[])[]> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protan: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deutan: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritan: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

function lab(rgb: Rgb): Rgb {
  const clipped = rgb.map((part) => Math.min(Math.max(part, 0), 1)) as unknown as Rgb;
  const xyz = times(
    [
      [0.4124564 / 0.95047, 0.3575761 / 0.95047, 0.1804375 / 0.95047],
      [0.2126729, 0.7151522, 0.072175],
      [0.0193339 / 1.08883, 0.119192 / 1.08883, 0.9503041 / 1.08883],
    ],
    clipped,
  );
  const [x, y, z] = xyz.map((part) => (part > 0.008856 ? Math.cbrt(part) : 7.787 * part + 16 / 116)) as [number, number, number];
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function difference(a: string, b: string, sight: string): number {
  const seen = (colour: string) => lab(times(SIGHTS[sight] ?? [], linear(colour)));
  const [first, second] = [seen(a), seen(b)];
  return Math.hypot(...first.map((part, at) => part - (second[at] ?? 0)));
}

/** From the bottom, as the writer stacks them. The remainder is hatched and needs no colour of its own. */
const STACK = [
  "kernel_stacks",
  "page_tables",
  "percpu",
  "vmalloc",
  "slab_unreclaimable",
  "balloon",
  "unaccounted",
  "hugetlb",
  "zram",
  "shared",
  "anon",
  "swap_cache",
  "slab_reclaimable",
  "buffers",
  "file_cache",
  "pcp",
];

const of = (table: Readonly<Record<string, Pair>>, name: string, theme: (typeof themes)[number]) =>
  (table[name] ?? ["", ""])[side[theme]];

describe.each(themes)("the %s palette", (theme) => {
  test("tells neighbours of the stack apart for every kind of sight", () => {
    STACK.slice(1).forEach((name, index) => {
      const below = STACK[index] ?? "";
      if (below === "unaccounted" || name === "unaccounted") return;
      for (const sight of Object.keys(SIGHTS)) {
        const apart = difference(of(DATA, below, theme), of(DATA, name, theme), sight);
        expect(apart, `${below} and ${name}, ${sight}`).toBeGreaterThanOrEqual(16);
      }
    });
  });

  test("tells neighbours among things alike apart for every kind of sight", () => {
    for (let line = 1; line <= 12; line++) {
      const [one, next] = [`line_${line}`, `line_${(line % 12) + 1}`];
      for (const sight of Object.keys(SIGHTS)) {
        const apart = difference(of(DATA, one, theme), of(DATA, next, theme), sight);
        expect(apart, `${one} and ${next}, ${sight}`).toBeGreaterThanOrEqual(16);
      }
    }
  });

  test("has a colour of its own for each owner of memory", () => {
    for (let line = 1; line <= 12; line++) {
      for (let other = 1; other < line; other++) {
        const apart = difference(of(DATA, `line_${line}`, theme), of(DATA, `line_${other}`, theme), "normal");
        expect(apart, `line_${line} and line_${other}`).toBeGreaterThanOrEqual(16);
      }
    }
  });

  test("draws lines that are seen on a panel", () => {
    for (let line = 1; line <= 12; line++) {
      expect(contrast(of(DATA, `line_${line}`, theme), of(SURFACE, "panel", theme)), `line_${line}`).toBeGreaterThan(3);
    }
  });

  test("has text that can be read on everything it stands on", () => {
    for (const text of ["ink", "ink-2", "ink-3", "link"]) {
      for (const ground of ["page", "panel", "hover", "code"]) {
        const enough = contrast(of(SURFACE, text, theme), of(SURFACE, ground, theme));
        expect(enough, `${text} on ${ground}`).toBeGreaterThanOrEqual(4.5);
      }
    }
    for (const severity of Object.keys(SEVERITY)) {
      for (const ground of [of(TINT, severity, theme), of(SURFACE, "panel", theme), of(SURFACE, "page", theme)]) {
        expect(contrast(of(SEVERITY, severity, theme), ground), severity).toBeGreaterThanOrEqual(4.5);
      }
      expect(contrast(of(SURFACE, "on-severity", theme), of(SEVERITY, severity, theme)), severity).toBeGreaterThanOrEqual(4.5);
    }
  });
});

test("no colour of severity is one of data", () => {
  const data = new Set(Object.values(DATA).flat().map((colour) => colour.toLowerCase()));
  const shared = ["critical", "warning", "info", "ok"].flatMap((name) => SEVERITY[name] ?? []);
  expect(shared.filter((colour) => data.has(colour.toLowerCase()))).toEqual([]);
});

test("each colour becomes one variable, and no name stands for two", () => {
  const all = variables() + heapVariables();
  const names = [...all.matchAll(/--([a-z0-9-]+):light-dark\(#[0-9a-f]{6},#[0-9a-f]{6}\)/gi)].map(([, name]) => name);
  const tables = [SURFACE, DATA, SEVERITY, TINT, HEAP].map((table) => Object.keys(table).length);
  expect(names.length).toBe(tables.reduce((sum, count) => sum + count, 0));
  expect(new Set(names).size).toBe(names.length);
});

test("each colour that the writer names is known", () => {
  const named = PAGE.charts.flatMap((chart) => chart.series.map((series) => series.colour));
  expect(named.length).toBeGreaterThan(25);
  expect(named.filter((name) => !(name in DATA))).toEqual([]);
});

/** The colours that are written in a text as `#rgb`, `#rrggbb`, with or without opacity; `url(#heap-hatch)` is none. */
function written(text: string): string[] {
  return text.match(/#(?:[\da-f]{8}|[\da-f]{6}|[\da-f]{3,4})(?![\w-])/gi) ?? [];
}

test("a written colour is found, and a name behind # is none", () => {
  expect(written("fill: light-dark(#E9EDF1, #252e37); color: #fff; #fffc")).toEqual(["#E9EDF1", "#252e37", "#fff", "#fffc"]);
  expect(written("fill: url(#heap-hatch); #theme {} #add-more {} #face_1 {}")).toEqual([]);
});

test("no colour is written outside of the palette, and each variable of one is known", () => {
  const source = new URL("../../src/", import.meta.url);
  const files = readdirSync(source).filter((name) => /\.(css|ts)$/.test(name) && name !== "palette.ts");
  expect(files).toContain("heap_cells.css");
  const code = (name: string) => readFileSync(new URL(name, source), "utf8").replace(/\/\*[^]*?\*\/|\/\/.*/g, "");
  expect(files.flatMap((name) => written(code(name)).map((colour) => `${name}: ${colour}`))).toEqual([]);
  const used = files.flatMap((name) => [...code(name).matchAll(/var\(--(heap-[\w-]+)\)/g)].map(([, variable]) => variable));
  expect([...new Set(used)].sort()).toEqual(Object.keys(HEAP).map((name) => `heap-${name}`).sort());
});
