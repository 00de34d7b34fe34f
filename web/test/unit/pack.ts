/** The writer's side of the page's data, for tests only. */

export interface Table {
  /** Milliseconds. */
  times: number[];
  /** For each series: nothing, means, or means with the least and the largest. */
  series: (number | null)[][][];
}

export function pack(tables: readonly Table[]): Uint8Array {
  const bytes: number[] = [];
  for (const table of tables) {
    let last = 0;
    for (const ms of table.times) {
      leb128(bytes, ms - last);
      last = ms;
    }
    for (const columns of table.series) {
      bytes.push([0, 1, 0, 3][columns.length] ?? 0);
      for (const column of columns) values(bytes, column);
    }
  }
  return Uint8Array.from(bytes);
}

function values(bytes: number[], column: readonly (number | null)[]): void {
  let last = 0;
  for (const value of column) {
    if (value === null) {
      bytes.push(0);
      continue;
    }
    const delta = value - last;
    leb128(bytes, (delta >= 0 ? 2 * delta : -2 * delta - 1) + 1);
    last = value;
  }
}

function leb128(bytes: number[], value: number): void {
  while (value >= 128) {
    bytes.push((value % 128) + 128);
    value = Math.floor(value / 128);
  }
  bytes.push(value);
}

/** Numbers from 0 to 1 that are the same in every run (mulberry32). */
export function random(seed: number): () => number {
  let state = seed * 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
