/**
 * Every colour of the page, for the light and the dark theme: the one table (a test). It becomes the style sheets' variables
 * when the page's program is built; the canvas is coloured from those (colours.ts). A term of memory has the same colour everywhere; colours of severity are never data's.
 *
 * Neighbours in the stack differ by a ΔE₇₆ of 16 or more for normal, protan, deutan and tritan sight; see the test.
 */

export type Pair = readonly [light: string, dark: string];

/** Text; what has no colour of its own is drawn in it. */
export const INK: Pair = ["#15202B", "#E8EDF2"];

/** What a curve is about. The names are those that the writer uses. */
export const DATA: Readonly<Record<string, Pair>> = {
  free: ["#E3E9EF", "#28323D"],
  pcp: ["#C6D0DA", "#3C4957"],
  file_cache: ["#35A07A", "#58C79F"],
  buffers: ["#9CD8BF", "#B5E8D3"],
  slab_reclaimable: ["#E5A800", "#E9BC45"],
  anon: ["#0072B2", "#2E8BD0"],
  swap_cache: ["#7DB7DC", "#9DCBEA"],
  shared: ["#7030C8", "#8F4FF0"],
  slab_unreclaimable: ["#C8600A", "#E48538"],
  page_tables: ["#54260F", "#86502B"],
  kernel_stacks: ["#A0622D", "#C98650"],
  percpu: ["#B08968", "#DBB898"],
  vmalloc: ["#D9C6B0", "#F0E2D2"],
  hugetlb: ["#1B1464", "#C4B5FD"],
  zram: ["#14532D", "#166B45"],
  balloon: ["#7A7F87", "#9AA0A8"],
  unaccounted: ["#15202B", "#E8EDF2"],
  swap_in: ["#B0306A", "#F0709F"],
  swap_out: ["#DFA3BF", "#8C4A68"],
  dirty: ["#0F6E4F", "#2FBF8F"],
  writeback: ["#86CDB2", "#1F7A5E"],
  psi_some: ["#F0B67F", "#8A5425"],
  psi_full: ["#BF4A00", "#FF9146"],
  kswapd: ["#7C93B2", "#6F89AC"],
  direct: ["#BF4A00", "#FF9146"],
  read: ["#2B7BBA", "#5AA9E6"],
  write: ["#A8641B", "#D99A4E"],
  limit: ["#15202B", "#E8EDF2"],
  others: ["#C9D1D9", "#3C4957"],
  line_1: ["#2166AC", "#6CA8E8"],
  line_2: ["#C26A12", "#F0A858"],
  line_3: ["#5E2B97", "#B48CF2"],
  line_4: ["#4E8A2E", "#A6D96A"],
  line_5: ["#8E1652", "#F86FAE"],
  line_6: ["#3F93A6", "#7FD6E0"],
  line_7: ["#6B4A2B", "#C99B6D"],
  line_8: ["#6F7F8F", "#DDE6EE"],
  line_9: ["#C044DC", "#4A66F5"],
  line_10: ["#8F8A00", "#1D9070"],
  line_11: ["#2A2AD0", "#D9D62A"],
  line_12: ["#0F3B24", "#F0703A"],
};

/** Text, icons and edges of a severity. Each level also has its own shape and word. */
export const SEVERITY: Readonly<Record<string, Pair>> = {
  critical: ["#B5122B", "#FF7386"],
  warning: ["#8F5200", "#FFB84D"],
  info: ["#2C5F9E", "#8AB6F0"],
  ok: ["#00695C", "#4FD0B3"],
  unknown: ["#15202B", "#E8EDF2"],
};

/** Backgrounds of what a severity is about. */
export const TINT: Readonly<Record<string, Pair>> = {
  critical: ["#FDEEF0", "#2A151B"],
  warning: ["#FFF5E3", "#271E10"],
  info: ["#ECF2FA", "#15202E"],
  ok: ["#E7F4F1", "#10231F"],
  unknown: ["#EDF0F4", "#1B232C"],
};

export const SURFACE = {
  page: ["#F4F6F8", "#0E1318"],
  panel: ["#FFFFFF", "#161D24"],
  ink: INK,
  "ink-2": ["#46535F", "#B1BCC7"],
  "ink-3": ["#5C6975", "#8C98A4"],
  line: ["#DDE3E9", "#27313B"],
  edge: ["#C3CDD6", "#3A4753"],
  grid: ["#E9EDF1", "#222B34"],
  hover: ["#EDF1F5", "#1D2630"],
  code: ["#F0F3F6", "#10161C"],
  link: ["#0B62A8", "#6BB3F0"],
  "on-severity": ["#FFFFFF", "#0E1318"],
} as const satisfies Record<string, Pair>;

/**
 * Cells of a heap's picture, and the curve of a part of it. Blue is live, amber is free; from one to the other the lightness
 * falls steadily (OKLab), so that it reads in grey, too. Neighbours differ by a ΔE₇₆ of 16 or more for normal, protan and
 * deutan sight, and of 11 or more for tritan sight.
 */
export const HEAP = {
  ground: ["#E9EDF1", "#252E37"],
  "live-0": ["#F6C445", "#FFD158"],
  "live-1": ["#BCA465", "#CAB87D"],
  "live-2": ["#908B70", "#A1A48F"],
  "live-3": ["#6B7675", "#7E9299"],
  "live-4": ["#4A6177", "#5E80A0"],
  "live-5": ["#083B75", "#1F5FA8"],
  "hatch-ground": ["#FFF0C2", "#6B4C00"],
  "hatch-line": ["#E09A00", "#F7C443"],
  top: ["#FFF6DE", "#33290F"],
  "top-edge": ["#B97700", "#F7C443"],
  "dots-ground": ["#D3DAE0", "#3C4957"],
  dot: ["#6F7F8F", "#9AA8B5"],
  cached: ["#15202B", "#FFFFFF"],
  part: ["#083B75", "#9DCBEA"],
} as const satisfies Record<string, Pair>;

type Table = readonly [prefix: string, colours: Readonly<Record<string, Pair>>];

const OF_EVERY_PAGE: readonly Table[] = [
  ["", SURFACE],
  ["", DATA],
  ["is-", SEVERITY],
  ["tint-", TINT],
];

function declared(tables: readonly Table[]): string {
  const colours = tables.flatMap(([prefix, table]) =>
    Object.entries(table).map(([name, pair]) => `--${prefix}${name.replace(/_/g, "-")}:light-dark(${pair.join()})`),
  );
  return colours.join(";");
}

/** The style sheet's variables, each with both its colours: `--ink:light-dark(#15202B,#E8EDF2)`. Paper is white. */
export function variables(): string {
  return [
    `:root{color-scheme:light dark;${declared(OF_EVERY_PAGE)}}`,
    ":root[data-theme=light]{color-scheme:light}",
    ":root[data-theme=dark]{color-scheme:dark}",
    "@media print{:root:root{color-scheme:light}}",
  ].join("\n");
}

/** What a page with a picture of a heap has beside those. */
export function heapVariables(): string {
  return `:root{${declared([["heap-", HEAP]])}}`;
}
