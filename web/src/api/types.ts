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
