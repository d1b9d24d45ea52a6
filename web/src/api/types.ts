export interface DeviceBody {
  readonly ordinal: number;
  readonly name: string;
  readonly role: string;
  readonly group: string | null;
}
export interface ColumnBody {
  readonly name: string;
  readonly meaning: string;
  readonly unit: string;
  readonly doc: string;
}
export interface TableBody {
  readonly name: string;
  readonly doc: string;
  readonly labels: readonly string[];
  readonly columns: readonly ColumnBody[];
}
export interface RecordingBody {
  readonly id: string;
  readonly name: string;
  readonly kind: string;
  readonly running: boolean;
  readonly from_us: number | null;
  readonly to_us: number | null;
  readonly interval_us: number | null;
  readonly devices: readonly DeviceBody[];
  readonly tables: readonly TableBody[];
}
export interface SeriesBody {
  readonly ordinal: number;
  readonly labels: Readonly<Record<string, string>>;
}
export interface ProblemBody {
  readonly file: string;
  readonly what: string;
}
export interface HealthBody {
  readonly from_us: number;
  readonly bin_us: number;
  readonly bins: { readonly ok: readonly number[]; readonly late: readonly number[]; readonly missed: readonly number[]; readonly error: readonly number[]; readonly skipped: readonly number[] };
  readonly totals: { readonly ok: number; readonly late: number; readonly missed: number; readonly error: number; readonly skipped: number; readonly intervals: number };
  readonly silent: readonly string[];
  readonly stalest: { readonly device: string; readonly object: string; readonly age_us: number } | null;
  readonly intervals_per_s: number;
  readonly problems: readonly ProblemBody[];
}
export interface StatesBody {
  readonly from_us: number;
  readonly bin_us: number;
  readonly bins: number;
  readonly level_ms: number;
  readonly rows: readonly { readonly series: number; readonly device: string; readonly bins: readonly number[]; readonly worst: readonly number[] }[];
  readonly series_per_row: number;
  readonly problems: readonly ProblemBody[];
}
export interface RowsBody {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | null)[])[];
  readonly truncated: boolean;
  readonly problems: readonly ProblemBody[];
}
export interface EventBody {
  readonly time_us: number;
  readonly device: string | null;
  readonly event: string;
  readonly object: string | null;
  readonly text: string | null;
  readonly count: number | null;
}
export interface EventsBody {
  readonly events: readonly EventBody[];
  readonly truncated: boolean;
}
export interface InventoryBody {
  readonly tables: readonly { readonly name: string; readonly rows: number; readonly log_rows: number; readonly parquet_bytes: number; readonly files: number; readonly from_us: number | null; readonly to_us: number | null }[];
  readonly log_bytes: number;
  readonly parquet_bytes: number;
  readonly summary_bytes: number;
  readonly bytes_a_day: number | null;
  readonly room_bytes: number | null;
  readonly gaps: readonly { readonly stream: string; readonly from_us: number; readonly to_us: number }[];
  readonly problems: readonly ProblemBody[];
  readonly collector: { readonly intervals: number; readonly start_us_p50: number | null; readonly start_us_p99: number | null; readonly complete_us_p99: number | null; readonly kept_us_p99: number | null; readonly stalled: number; readonly socket_drops: number; readonly strays: number } | null;
}
export interface AlertBody {
  readonly id: string;
  readonly recording: string;
  readonly device: string | null;
  readonly object: string | null;
  readonly text: string | null;
  readonly state: string;
  readonly raised_us: number;
  readonly cleared_us: number | null;
  readonly acknowledged_us: number | null;
  readonly silenced_until_us: number | null;
}
