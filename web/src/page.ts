/** What the writer put into the page: the head of its data, as `memtide-page/1` defines it. Times are seconds from the start. */

export type ChartKind = "stack" | "lines" | "mirror";
export type Unit = "bytes" | "bytes/s" | "pages/s" | "share" | "count" | "count/s" | "ms";

export interface Series {
  id: string;
  /** May be a name from the host: untrusted, only ever set as text. */
  label: string;
  colour: string;
  /** What one step of the packed integers is worth, in the chart's unit. */
  scale: number;
  is_steps: boolean;
  is_negative: boolean;
  is_limit: boolean;
}

export interface Limit {
  label: string;
  value: number | null;
  series: string | null;
}

export interface Chart {
  id: string;
  title: string;
  kind: ChartKind;
  unit: Unit;
  is_wide: boolean;
  is_log: boolean;
  top: number | null;
  series: Series[];
  limits: Limit[];
  evidence_of: number[];
  says: string;
}

export interface LevelHead {
  from_s: number;
  to_s: number;
  rows: number;
  is_reduced: boolean;
}

export interface Finding {
  severity: string;
  id: string;
  title: string;
  from_s: number | null;
  to_s: number | null;
  charts: string[];
}

export interface HostEvent {
  at_s: number;
  text: string;
  is_main: boolean;
}

export interface Meta {
  format: string;
  start_unix_ms: number | null;
  utc_offset_min: number | null;
  /** What to add to a time where it is read as an offset: people count from the source's first sample. */
  offset_s?: number;
  span_s: number;
  interval_s: number | null;
  worst_s: number;
  levels: LevelHead[];
  gaps: [number, number][];
  charts: Chart[];
  findings: Finding[];
  events: HostEvent[];
}

const FORMAT = "memtide-page/1";

/** Reads the head. The page is complete without charts, so what is wrong is told in words and nothing else is lost. */
export function readMeta(text: string): Meta {
  const meta = JSON.parse(text) as Meta;
  if (meta.format !== FORMAT) {
    throw new Error(`this page's charts have the format ${meta.format}, expected ${FORMAT}`);
  }
  return meta;
}
