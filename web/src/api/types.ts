// Generated from server/openapi.json by `npm run types`.

/** The agent of a device. */
export interface AgentBody {
  /** Address and port. */
  readonly address: string;
  /** Version of SNMP: `1`, `2c` or `3`. */
  readonly version: string;
}

/** An alert as the API describes it. */
export interface AlertBody {
  /** When it was acknowledged since; null when not. */
  readonly acknowledged_us: number | null;
  /** When it was cleared; null while it is raised. */
  readonly cleared_us: number | null;
  /** The device; null for the collector itself. */
  readonly device: string | null;
  /** What it is called in addresses. */
  readonly id: string;
  /** Value or table that it concerns; null for the device as a whole. */
  readonly object: string | null;
  /** When it was raised. */
  readonly raised_us: number;
  /** The id of the recording that says it. */
  readonly recording: string;
  /** The rule that found it. */
  readonly rule: string;
  /** Until when it is silenced; null when not. */
  readonly silenced_until_us: number | null;
  /** `raised` or `cleared`. */
  readonly state: string;
  /** For people. */
  readonly text: string | null;
}

/** Whether anything is alerted of. */
export interface AlertRulesBody {
  /** Whether rules are set, as far as the recording says. */
  readonly set: boolean;
}

/** How the collector did. */
export interface CollectorBody {
  /** When the last answer had been received, 99th percentile. */
  readonly complete_us_p99: number | null;
  /** Intervals that were looked at. */
  readonly intervals: number;
  /** When the last row was handed to the kernel, 99th percentile. */
  readonly kept_us_p99: number | null;
  /** Datagrams that its own socket dropped. */
  readonly socket_drops: number;
  /** Intervals that its own late wake-up spoiled. */
  readonly stalled: number;
  /** When the first request left after its due instant, median. */
  readonly start_us_p50: number | null;
  /** The same, 99th percentile: the jitter of asking. */
  readonly start_us_p99: number | null;
  /** Datagrams that belonged to no open request. */
  readonly strays: number;
}

/** A column as its writer declared it. */
export interface ColumnBody {
  /** The column that is looked at together with it: the other direction of a link. */
  readonly beside: string | null;
  /** One sentence for people. */
  readonly doc: string;
  /** The table whose row of the same time, device and value of this column explains the row. */
  readonly joins: string | null;
  /** Whether its newest value is a fact about a device, read as a number. */
  readonly listed: boolean;
  /** `gauge`, `counter`, `state`, `label` or `detail`. */
  readonly meaning: string;
  /** The name by which requests ask for it. */
  readonly name: string;
  /** The words of a state, from best to worst; empty for other columns. */
  readonly order: readonly string[];
  /** Place among what is shown without being asked for, from 1; null for what is only shown when chosen. */
  readonly shown: number | null;
  /** Unit of its values as they are drawn, counters as rates: `octets/s`; empty when none. */
  readonly unit: string;
  /** One or two words for people: `disk used`. */
  readonly words: string;
}

/** The samples of a CPU. */
export interface CoreBody {
  /** Its number on the host. */
  readonly cpu: number;
  /** The host that it belongs to. */
  readonly host: string;
  /** Samples in all seconds. */
  readonly samples: number;
  /** Samples of each second; empty where they were not asked for. */
  readonly seconds: readonly number[];
}

/** Samples of each CPU by second. */
export interface CoresBody {
  /** The CPUs that there are samples of, by host and number. */
  readonly cores: readonly CoreBody[];
  /** The begin of the first second. */
  readonly from_us: number;
}

/** A device as its recording knows it. */
export interface DeviceBody {
  readonly agent: AgentBody | null;
  /** The group it stands in, for example a rack. */
  readonly group: string | null;
  /** Name, as in the label `device`. */
  readonly name: string;
  /** Position in the list. */
  readonly ordinal: number;
  /** `host`, `switch` or `unknown`. */
  readonly role: string;
}

/** Why a request was refused, as it is sent. */
export interface ErrorBody {
  /** What happened and what to do. */
  readonly error: string;
  /** The parameter, table or header that it concerns; empty when none. */
  readonly place: string;
}

/** Something that happened. */
export interface EventBody {
  /** How many, where the kind counts something. */
  readonly count: number | null;
  /** The device; null for the collector itself. */
  readonly device: string | null;
  /** Kind. */
  readonly event: string;
  /** Interface, disk or object. */
  readonly object: string | null;
  /** For people. */
  readonly text: string | null;
  /** Instant of the event, µs since the epoch. */
  readonly time_us: number;
}

/** Events, oldest first. */
export interface EventsBody {
  /** The newest ones of the time. */
  readonly events: readonly EventBody[];
  /** Files that could not be read: events of them are missing. */
  readonly problems: readonly ProblemBody[];
  /** Whether there are more than were asked for. */
  readonly truncated: boolean;
}

/** A fabric as the page draws it. */
export interface FabricBody {
  /** The cluster's name. */
  readonly name: string;
  /** Its switches; other lists name them by their places here. */
  readonly switches: readonly FabricSwitchBody[];
  /** What joins them. */
  readonly trunks: readonly FabricTrunkBody[];
  /** The VLANs that are planned. */
  readonly vlans: readonly FabricVlanBody[];
}

/** One end of a trunk. */
export interface FabricEndBody {
  /** Its interfaces, one a cable, as its agent calls them. */
  readonly interfaces: readonly string[];
  /** The place of the switch in the list. */
  readonly switch: number;
}

/** A switch of the drawing. */
export interface FabricSwitchBody {
  /** Their names, folded. */
  readonly host_names: string;
  /** How many hosts it has. */
  readonly hosts: number;
  /** Its name, as in the label `device`. */
  readonly name: string;
  /** Where it stands, to the right; neighbours are about 1 apart. */
  readonly x: number;
  /** Where it stands, downward. */
  readonly y: number;
}

/** A link between two switches, or several that are aggregated. */
export interface FabricTrunkBody {
  /** Both ends. */
  readonly ends: readonly FabricEndBody[];
  /** What all of its cables carry in one direction, in bit/s. */
  readonly rate_bits_per_s: number;
  /** The VLANs that run over it, by their identifiers. */
  readonly vlans: readonly number[];
}

/** A VLAN that is planned. */
export interface FabricVlanBody {
  /** `frames`, `failures` or `management`. */
  readonly purpose: string;
  /** The places of the switches whose hosts send in it. */
  readonly sources: readonly number[];
  /** Its identifier. */
  readonly vlan: number;
}

/** Samples as a tree of callers, or the time that threads were off the CPU. Nodes are columns: the root is the first of each. */
export interface FlameBody {
  /** What nodes count: `samples`, or `off_cpu_ns`; that takes the place of samples in all of this then. */
  readonly counted: string;
  /** The function of each node; the root's means nothing. */
  readonly frame: readonly number[];
  /** The functions that nodes name by their position here. */
  readonly frames: readonly FrameBody[];
  /** Nodes that were left out since there were more than `nodes`: those with the fewest samples. */
  readonly left_out: number;
  /** Samples in each node itself. */
  readonly own: readonly number[];
  /** The position of the node that called each node, which is before it; the root names itself. */
  readonly parent: readonly number[];
  /** Files of the recording that could not be read: samples in them are missing. */
  readonly problems: number;
  /** The samples that were asked for, and those that they are compared with if any. */
  readonly sides: readonly SideBody[];
  /** As `own`, of the samples that are compared with; empty where nothing is. */
  readonly than_own: readonly number[];
  /** As `total`, of the samples that are compared with; empty where nothing is. */
  readonly than_total: readonly number[];
  /** Samples in each node and all that it called, also in nodes that were left out. */
  readonly total: readonly number[];
  /** Samples whose own address has no name, by reason. */
  readonly unnamed: Readonly<Record<string, number>>;
}

/** A function. */
export interface FrameBody {
  /** The file that it is in; of a group its host; empty where there is none. */
  readonly file: string;
  /** `group`, `kernel`, `made` (by a compiler at run time), `code` or `unnamed`. */
  readonly kind: string;
  /** Its name, or that of the thread, process, CPU, host or job that samples are grouped by. */
  readonly name: string;
}

/** A span without a row. */
export interface GapBody {
  /** The last row before. */
  readonly from_us: number;
  /** The stream whose writer did not write. */
  readonly stream: string;
  /** The first row after. */
  readonly to_us: number;
}

/** Columns of equal length. */
export interface HealthBinsBody {
  /** Answered with an error. */
  readonly error: readonly number[];
  /** Answered late. */
  readonly late: readonly number[];
  /** Not answered. */
  readonly missed: readonly number[];
  /** Answered in time. */
  readonly ok: readonly number[];
  /** Not asked. */
  readonly skipped: readonly number[];
}

/** States over time. */
export interface HealthBody {
  /** The length of a bin. */
  readonly bin_us: number;
  /** Device intervals by state, a number a bin. */
  readonly bins: HealthBinsBody;
  /** The begin of the first bin. */
  readonly from_us: number;
  /** Intervals a second at `to`. */
  readonly intervals_per_s: number;
  /** Files that could not be read. */
  readonly problems: readonly ProblemBody[];
  /** Devices that have not answered for 3 s, or two of their intervals, at `to`. */
  readonly silent: readonly string[];
  readonly stalest: StalestBody | null;
  /** Their sums. */
  readonly totals: HealthTotalsBody;
}

/** How well one of several recordings was measured. */
export interface HealthOfBody {
  readonly health: HealthBody | null;
  /** Id of the recording. */
  readonly recording: string;
}

/** Sums over all bins. */
export interface HealthTotalsBody {
  /** Answered with an error. */
  readonly error: number;
  /** Intervals of the collector, each of which all devices have. */
  readonly intervals: number;
  /** Answered late. */
  readonly late: number;
  /** Not answered. */
  readonly missed: number;
  /** Answered in time. */
  readonly ok: number;
  /** Not asked. */
  readonly skipped: number;
}

/** Samples by second and by tile of the second, added up over hosts and CPUs. */
export interface HeatBody {
  /** What they are the sums of. */
  readonly cores: readonly CoreBody[];
  /** The begin of the first second. */
  readonly from_us: number;
  /** How many there were in each second. */
  readonly samples: readonly number[];
  /** What a tile spans. */
  readonly tile_us: number;
  /** Samples of each tile, second after second. */
  readonly tiles: readonly number[];
  /** How many of them there are in a second. */
  readonly tiles_per_second: number;
}

/** What a recording holds. */
export interface InventoryBody {
  /** Octets of files a day of measuring; null while not known. */
  readonly bytes_a_day: number | null;
  readonly collector: CollectorBody | null;
  /** Spans of at least 10 s without a row. */
  readonly gaps: readonly GapBody[];
  /** Octets of the log. */
  readonly log_bytes: number;
  /** Octets of Parquet files, summaries apart. */
  readonly parquet_bytes: number;
  /** Files that cannot be read wholly. */
  readonly problems: readonly ProblemBody[];
  /** Octets that can still be written; null where the system does not say. */
  readonly room_bytes: number | null;
  /** Octets of summaries. */
  readonly summary_bytes: number;
  /** Tables, summaries among them. */
  readonly tables: readonly TableInventoryBody[];
}

/** A column of a view. */
export interface LiveColumnBody {
  /** The column's name in the table. */
  readonly name: string;
  /** Unit of its values, counters as rates. */
  readonly unit: string;
}

/** One interval. */
export interface LiveHealthBody {
  /** Devices that answered with an error. */
  readonly error: number;
  /** Devices that answered late. */
  readonly late: number;
  /** Devices that did not answer. */
  readonly missed: number;
  /** The newest due instant of which there are rows. */
  readonly newest_us: number;
  /** Devices that ended ok. */
  readonly ok: number;
  /** When the last answer of the interval was received; null without an answer. */
  readonly received_us: number | null;
  /** When this was handed over, by the server's clock, as its answers tell it in `Meikyo-Clock`. */
  readonly sent_us: number;
  /** Devices that were not asked. */
  readonly skipped: number;
  /** Its due instant. */
  readonly time_us: number;
}

/** What a viewer gets as text. */
export type LiveReply = {
  /** The view began: what numbers mean from here on. */
  readonly subscribed: SubscribedBody;
} | {
  /** The newest interval. */
  readonly health: LiveHealthBody;
} | {
  /** Something happened. */
  readonly event: EventBody;
} | {
  /** Steps that were dropped because the viewer took them too slowly. */
  readonly dropped: number;
} | {
  /** The replay is over. */
  readonly ended: boolean;
} | {
  /** The request was refused; what was seen before goes on. */
  readonly refused: ErrorBody;
};

/** What a device has several of. */
export interface PartBody {
  /** What the one with the greatest value is: `busiest`. */
  readonly greatest: string;
  /** One of them: `interface`. */
  readonly noun: string;
}

/** A file that could not be read wholly. */
export interface ProblemBody {
  /** The file, relative to the recording. */
  readonly file: string;
  /** What is wrong with it. */
  readonly what: string;
}

/** Values per series and pixel. */
export interface RangeBody {
  /** The length of a bin. */
  readonly bin_us: number;
  /** Bins from `from` to `to`. */
  readonly bins: number;
  /** The begin of bin 0. */
  readonly from_us: number;
  /** The span of the summaries that were read, ms; 0 where raw readings were. */
  readonly level_ms: number;
  /** Files that could not be read: what they held is missing from the rows. */
  readonly problems: readonly ProblemBody[];
  /** The series, or folded rows of neighbouring series, that have values. */
  readonly rows: readonly RangeRowBody[];
  /** Series a row; 1 when nothing was folded. */
  readonly series_per_row: number;
  /** Unit of the values. */
  readonly unit: string;
}

/** Values of one row; columns of equal length. */
export interface RangeRowBody {
  /** The bins that have a value. */
  readonly bins: readonly number[];
  /** How many readings. */
  readonly count: readonly number[];
  /** The labels of the series, or of the first one of the row. */
  readonly labels: Readonly<Record<string, string>>;
  /** The greatest. */
  readonly max: readonly number[];
  /** The mean, weighted by readings or by known time. */
  readonly mean: readonly number[];
  /** The least value in each of them. */
  readonly min: readonly number[];
  /** Ordinal of the series, or of the row. */
  readonly series: number;
}

/** A recording as the API describes it. */
export interface RecordingBody {
  /** Its devices, in the order of the cluster file where that is known. */
  readonly devices: readonly DeviceBody[];
  /** The first instant; null while it has no rows. */
  readonly from_us: number | null;
  /** Short and stable name in addresses. */
  readonly id: string;
  /** The shortest span between two polls of a device; null when not known. */
  readonly interval_us: number | null;
  /** `measured` or `simulated`. */
  readonly kind: string;
  /** Name for people: its directory. */
  readonly name: string;
  /** Whether somebody writes it now. */
  readonly running: boolean;
  /** What rows there are, by table. */
  readonly tables: readonly TableBody[];
  /** The last instant; null while it has no rows. */
  readonly to_us: number | null;
}

/** A past that is played again. */
export interface ReplayRequest {
  /** From then on. */
  readonly from_us: number;
  /** Recorded seconds a second, at most 1000. */
  readonly speed?: number;
}

/** Rows, newest last. */
export interface RowsBody {
  /** Names of the columns; times are µs since 1970. */
  readonly columns: readonly string[];
  /** Files that could not be read. */
  readonly problems: readonly ProblemBody[];
  /** The values of each row in that order; numbers beyond 2^53 as texts, null where missing. */
  readonly rows: readonly (readonly unknown[])[];
  /** Whether there are more rows than were asked for. */
  readonly truncated: boolean;
}

/** A sender of rows. */
export interface SenderBody {
  /** Whether the newest rows are taken from it: of several collectors of the same devices, those of one are. */
  readonly active: boolean;
  /** Blocks that were stored since the server began. */
  readonly blocks: number;
  /** How far the truth can be from that, µs; half of the shortest round trip. */
  readonly clock_error_us: number | null;
  /** Whether its clock is wrong by so much that its rows stand at the wrong time among those of others. */
  readonly clock_is_wrong: boolean;
  /** By how much this server's clock is ahead of the sender's, µs; null before that was measured. */
  readonly clock_offset_us: number | null;
  /** The cluster that it measures; null for senders of the recording that all others share. */
  readonly cluster: string | null;
  /** Whether it is connected. */
  readonly connected: boolean;
  /** Gaps that it told. */
  readonly gaps: number;
  /** When something of it came last, µs since 1970. */
  readonly heard_us: number;
  /** What it is called together with the collectors that stand by for it; null for the only one. */
  readonly identity: string | null;
  /** How old its newest row is, µs, its clock set right; null before it sent any. */
  readonly lag_us: number | null;
  /** Rows in these gaps, where they are counted. */
  readonly missing_rows: number;
  /** Id of the recording that its rows go to; null while that is not served. */
  readonly recording: string | null;
  /** Rows in them. */
  readonly rows: number;
  /** Its name. */
  readonly sender: string;
}

/** One series: what agrees in all labels. */
export interface SeriesBody {
  /** The labels by name. */
  readonly labels: Readonly<Record<string, string>>;
  /** Number of the series in its table, the same as long as the server runs. */
  readonly ordinal: number;
}

/** Samples that a tree is made of. */
export interface SideBody {
  /** When the first of them was taken. */
  readonly first_us: number | null;
  /** From when on was asked. */
  readonly from_us: number;
  /** When the last of them was taken. */
  readonly last_us: number | null;
  /** What was lost in that time, as the table `losses` counts it. */
  readonly losses: Readonly<Record<string, number>>;
  /** How often threads left their CPU in that time; only with `of=off_cpu`. */
  readonly off_cpu_spans: number | null;
  /** How many of the ns others ran in the place of threads that could have run; only with `of=off_cpu`. */
  readonly preempted_ns: number | null;
  /** Samples in that time. */
  readonly samples: number;
  /** Those of them that are known as sums of their second only: without callers, by place of code. */
  readonly summed_up: number;
  /** Until when was asked. */
  readonly to_us: number;
}

/** What is asked for when an alert is silenced. */
export interface SilenceRequest {
  /** For how long, at most 30 days. */
  readonly for_us: number;
}

/** A value that is old. */
export interface StalestBody {
  /** How old it is: since when it was true at the agent. */
  readonly age_us: number;
  /** The device that it is a value of. */
  readonly device: string;
  /** Table, instance and column of the value; empty where all of the device are as old as its answer. */
  readonly object: string;
}

/** States per device and pixel. */
export interface StatesBody {
  /** The length of a bin. */
  readonly bin_us: number;
  /** How many bins. */
  readonly bins: number;
  /** The begin of bin 0. */
  readonly from_us: number;
  /** The span of the summaries that were read, ms; 0 where raw readings were. */
  readonly level_ms: number;
  /** Files that could not be read. */
  readonly problems: readonly ProblemBody[];
  /** The devices that were not always ok. */
  readonly rows: readonly StatesRowBody[];
  /** Devices a row; 1 when nothing was folded. */
  readonly series_per_row: number;
}

/** The pixels of one device that are worse than ok; columns of equal length. */
export interface StatesRowBody {
  /** The bins that are worse than ok. */
  readonly bins: readonly number[];
  /** The device, or the first one of the row. */
  readonly device: string;
  /** Number of the device among the series of answers, or of the row. */
  readonly series: number;
  /** 1 late, 2 skipped, 3 error, 4 missed. */
  readonly worst: readonly number[];
}

/** What a viewer sends. */
export interface SubscribeRequest {
  /** What he sees; replaces what he saw before. */
  readonly subscribe: Subscription;
}

/** What the binary messages of a view hold. */
export interface SubscribedBody {
  /** The columns with values. */
  readonly columns: readonly LiveColumnBody[];
  /** What `offset_ms` counts from. */
  readonly epoch_us: number;
  /** Whether somebody writes the recording now. */
  readonly running: boolean;
  /** The series that are seen; later ones are listed by `series`. */
  readonly series: readonly SeriesBody[];
}

/** What a viewer sees. */
export interface Subscription {
  /** Its columns, 1 to 32. */
  readonly columns: readonly string[];
  /** At most one message in that span, each with the newest row a series; every row when absent. */
  readonly every_us: number | null;
  /** Texts that labels have, `*` and `?` stand for any text; all series when empty. */
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  readonly replay: ReplayRequest | null;
  /** The table that is looked at. */
  readonly table: string;
}

/** A table as its writer declared it. */
export interface TableBody {
  /** All columns but `time`. */
  readonly columns: readonly ColumnBody[];
  /** One sentence for people. */
  readonly doc: string;
  /** The columns that name a series. */
  readonly labels: readonly string[];
  /** The name by which requests ask for it. */
  readonly name: string;
  readonly part: PartBody | null;
  /** What it is for: `readings`, `answers` (how devices' intervals ended), `health`, `requests`, `findings` (how often values are updated), `events`, `clocks`, `samples` (of processors) or `context` (what explains them). */
  readonly role: string;
  /** What people call it, as a heading. */
  readonly title: string;
}

/** What there is of one table. */
export interface TableInventoryBody {
  /** How many Parquet files it has. */
  readonly files: number;
  /** The first instant. */
  readonly from_us: number | null;
  /** Rows of these in the log. */
  readonly log_rows: number;
  /** The table's name. */
  readonly name: string;
  /** Octets of its files. */
  readonly parquet_bytes: number;
  /** Rows, in the log and in files. */
  readonly rows: number;
  /** The last instant. */
  readonly to_us: number | null;
}
