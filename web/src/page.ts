/** The head of the charts' data, as `memtide-page/1` defines it. Times are seconds from the start. */

export type ChartKind = "stack" | "lines" | "mirror";
export type Unit = "bytes" | "bytes/s" | "pages/s" | "count/s" | "share" | "ms";

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
  /** The pale one of a pair of colours. */
  is_pale?: true;
  is_hatched?: true;
  /** One of several owners in a stack: a thin line is drawn between neighbours. */
  is_alike?: true;
  /** The heading under which a table has it, with its neighbours of the same group. */
  group?: string;
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
  /** The overview and the wide ones take the whole width. */
  size: "overview" | "wide" | "small";
  is_log: boolean;
  top: number | null;
  series: Series[];
  limits: Limit[];
  /** Ids of the two series between which a band lies. */
  band: [low: string, high: string] | null;
  evidence_of: number[];
  says: string;
}

export interface LevelHead {
  from_s: number;
  to_s: number;
  rows: number;
}

export type Stretch = [from: number, to: number];

export interface Finding {
  severity: "critical" | "warning" | "info";
  id: string;
  /** What it is about, as `/shop`; null where nothing in particular. */
  subject: string | null;
  title: string;
  from_s: number | null;
  to_s: number | null;
  /** Every time at which it held, in order; `from_s` and `to_s` are the longest of them. */
  stretches: Stretch[];
  charts: string[];
  /** Whether it follows from no other. */
  is_root: boolean;
}

/** A stretch in which nothing was recorded, or several close together: from, to, and how much of it is missing. */
export type Gap = [from: number, to: number, lost: number];

export interface HostEvent {
  at_s: number;
  text: string;
  is_main: boolean;
}

export interface Meta {
  format: string;
  start_unix_ms: number | null;
  /** By how many seconds the clock that people read is ahead of that and the time since, from which second on. */
  offsets: [from: number, seconds: number][];
  /** The day of the source's last sample, in days since 1970; its moments need no day. Null where every moment has its day. */
  last_day: number | null;
  /** The year of that day, which days are shown without. Null where every day has its year. */
  last_year: number | null;
  /** What to add to a time where it is read as an offset: people count from the source's first sample. */
  offset_s: number;
  span_s: number;
  interval_s: number | null;
  worst_s: number;
  levels: LevelHead[];
  gaps: Gap[];
  charts: Chart[];
  findings: Finding[];
  events: HostEvent[];
}

export const FORMAT = "memtide-page/1";
