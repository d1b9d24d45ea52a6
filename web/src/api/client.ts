/**
 * Requests to the server that this page came from. All addresses are relative, so that a path prefix of a proxy
 * stays in front of them. Errors carry what happened and what to do.
 */

import { heardClock } from "./clock.ts";

export class ApiError extends Error {
  readonly status: number;
  /** The parameter, table or file that it is about. */
  readonly place: string;

  constructor(status: number, message: string, place: string) {
    super(message);
    this.status = status;
    this.place = place;
  }
}

export type Parameter = string | number | boolean | null | undefined | readonly string[];

/** An address below `api/v1/`; missing parameters are left out, lists are repeated. */
export function apiPath(path: string, parameters: Readonly<Record<string, Parameter>> = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === null || value === undefined) continue;
    if (Array.isArray(value)) for (const one of value as readonly string[]) query.append(name, one);
    else query.append(name, String(value));
  }
  const text = query.toString();
  return `api/v1/${path}${text === "" ? "" : `?${text}`}`;
}

/** The address for other programs, with host and prefix. */
export function absolute(path: string): string {
  return new URL(path, document.baseURI.split("#")[0]).href;
}

export function recordingPath(id: string, rest: string): string {
  return `recordings/${encodeURIComponent(id)}/${rest}`;
}

async function answer(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  const sentMs = performance.now();
  try {
    response = await fetch(path, { credentials: "same-origin", ...init });
    heardClock(response.headers.get("meikyo-clock"), sentMs, performance.now());
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    throw new ApiError(0, "the server does not answer; start it again with: meikyo serve RECORDING", path);
  }
  if (response.ok) return response;
  const told = (await response.json().catch(() => null)) as { error?: string; place?: string } | null;
  const told401 = "the server wants a token; open the address that `meikyo serve` printed";
  const text =
    told?.error ??
    (response.status === 401 ? told401 : `the server answered ${response.status} ${response.statusText}`);
  throw new ApiError(response.status, text, told?.place ?? path);
}

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await answer(path, signal === undefined ? {} : { signal });
  return (await response.json()) as T;
}

export async function getBytes(path: string, signal?: AbortSignal): Promise<{ bytes: Uint8Array; headers: Headers }> {
  const response = await answer(path, signal === undefined ? {} : { signal });
  return { bytes: new Uint8Array(await response.arrayBuffer()), headers: response.headers };
}

export async function postJson(path: string, body: unknown): Promise<void> {
  await answer(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

/** What an error says to a person. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function wasAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}
