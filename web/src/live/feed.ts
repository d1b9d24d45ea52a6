/**
 * One live subscription: a WebSocket that joins again by itself for as long as it is wanted.
 *
 * The server sends only what is subscribed to, and drops whole intervals for a viewer that cannot follow; both
 * show up here as `onDropped`. After a lost connection the page has a hole, which `onJoined(true)` lets the owner
 * fill from the recording.
 */

import { counters, timed } from "../paint/painter.ts";
import { connection, rejoined } from "../session/now.ts";
import { decodeFrame, type Frame } from "./frame.ts";

export interface Subscription {
  readonly table: string;
  readonly columns: readonly string[];
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  readonly every_us?: number;
  readonly replay?: { readonly from_us: number; readonly speed: number };
}

export interface LiveSeries {
  readonly ordinal: number;
  readonly labels: Readonly<Record<string, string>>;
}

export interface FeedListener {
  onFrame(frame: Frame): void;
  /** The server left intervals out, because this viewer was slow. */
  onDropped?(): void;
  onJoined?(series: readonly LiveSeries[], again: boolean): void;
  onHealth?(health: Readonly<Record<string, unknown>>): void;
  onEvent?(event: Readonly<Record<string, unknown>>): void;
  /** The replay is over. */
  onEnded?(): void;
  /** The server will not send this, and says why. */
  onRefused?(why: string): void;
}

/** Attempts to join again come after 0.2 s, then ever more slowly up to this. */
const PAUSE_MAX_MS = 2000;

interface Subscribed {
  readonly epoch_us: number;
  readonly series: readonly LiveSeries[];
  readonly columns: readonly { readonly name: string; readonly unit: string }[];
}

const feeds = new Set<Feed>();

function tellConnection(): void {
  const states = [...feeds].map((feed) => feed.joined);
  if (states.length === 0) {
    // Nobody listens, so nobody knows; the list of recordings tells whether the server is there.
    if (connection.value === "away") connection.value = "joining";
    return;
  }
  if (states.every(Boolean)) connection.value = "joined";
  else if ([...feeds].some((feed) => !feed.joined && feed.everJoined)) connection.value = "away";
}

export class Feed {
  joined = false;
  everJoined = false;
  private socket: WebSocket | null = null;
  private closed = false;
  private pauseMs = 200;
  private timer = 0;
  private schema: Uint8Array | null = null;
  private epochUs = 0;
  private columns: readonly string[] = [];
  private readonly recording: string;
  private readonly subscription: () => Subscription;
  private readonly listener: FeedListener;

  /** `subscription` is asked at every joining: a replay that was cut off goes on where it was. */
  constructor(recording: string, subscription: () => Subscription, listener: FeedListener) {
    this.recording = recording;
    this.subscription = subscription;
    this.listener = listener;
    feeds.add(this);
    this.join();
  }

  close(): void {
    this.closed = true;
    window.clearTimeout(this.timer);
    feeds.delete(this);
    this.socket?.close();
    tellConnection();
  }

  private join(): void {
    const address = new URL(
      `api/v1/recordings/${encodeURIComponent(this.recording)}/live`,
      document.baseURI.split("#")[0],
    );
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.addEventListener("open", () => socket.send(JSON.stringify({ subscribe: this.subscription() })));
    socket.addEventListener("message", (event: MessageEvent<string | ArrayBuffer>) => {
      timed(() => this.take(event.data));
    });
    socket.addEventListener("close", () => this.lost());
  }

  private lost(): void {
    this.joined = false;
    this.schema = null;
    if (this.closed) return;
    tellConnection();
    if (!this.everJoined) connection.value = "away";
    this.timer = window.setTimeout(() => this.join(), this.pauseMs);
    this.pauseMs = Math.min(PAUSE_MAX_MS, this.pauseMs * 1.6);
  }

  private take(data: string | ArrayBuffer): void {
    if (this.closed) return;
    if (typeof data === "string") this.takeText(data);
    else this.takeBinary(new Uint8Array(data));
  }

  private takeText(text: string): void {
    const message = JSON.parse(text) as Record<string, unknown>;
    if (message["subscribed"] !== undefined) this.takeSubscribed(message["subscribed"] as Subscribed);
    if (message["health"] !== undefined) this.listener.onHealth?.(message["health"] as Record<string, unknown>);
    if (message["event"] !== undefined) this.listener.onEvent?.(message["event"] as Record<string, unknown>);
    if (message["ended"] === true) this.listener.onEnded?.();
    const refused = message["refused"] as { error?: string } | undefined;
    if (refused !== undefined) this.listener.onRefused?.(refused.error ?? "the server refused the subscription");
    if (typeof message["dropped"] === "number") {
      counters.droppedFrames += message["dropped"];
      this.listener.onDropped?.();
    }
  }

  private takeSubscribed(subscribed: Subscribed): void {
    this.epochUs = subscribed.epoch_us;
    this.columns = subscribed.columns.map(({ name }) => name);
    this.schema = null;
    const again = this.everJoined;
    this.joined = true;
    this.everJoined = true;
    this.pauseMs = 200;
    if (again) rejoined.value += 1;
    tellConnection();
    this.listener.onJoined?.(subscribed.series, again);
  }

  private takeBinary(bytes: Uint8Array): void {
    if (this.schema === null) {
      this.schema = bytes;
      return;
    }
    counters.receivedFrames += 1;
    this.listener.onFrame(decodeFrame(this.schema, bytes, this.columns, this.epochUs));
  }
}
