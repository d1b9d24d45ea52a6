/** How the collector itself does: jitter, cost, what it kept and what it lost. */

import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import { apiPath, getJson, recordingPath, wasAborted } from "../api/client.ts";
import type { InventoryBody } from "../api/types.ts";
import { recording } from "../session/recordings.ts";
import { count, quantityText, span } from "../words/quantity.ts";

export const inventory = signal<InventoryBody | null>(null);

const REFRESH_MS = 5000;

/** Keeps the inventory of the recording fresh while anybody shows it. */
export function useInventory(): InventoryBody | null {
  const id = recording.value?.id;
  useEffect(() => {
    if (id === undefined) return undefined;
    const stop = new AbortController();
    const ask = (): void => {
      getJson<InventoryBody>(apiPath(recordingPath(id, "inventory")), stop.signal)
        .then((told) => { inventory.value = told; })
        .catch((error: unknown) => { if (!wasAborted(error)) inventory.value = null; });
    };
    ask();
    const timer = window.setInterval(ask, REFRESH_MS);
    return () => {
      stop.abort();
      window.clearInterval(timer);
    };
  }, [id]);
  return inventory.value;
}

export function CollectorCard() {
  const told = useInventory();
  if (told === null) return null;
  const { collector } = told;
  return (
    <section class="card" aria-label="Collector">
      <h2>Collector</h2>
      <dl>
        <dt>interval complete, p99</dt><dd>{span(collector?.complete_us_p99)}</dd>
        <dt>start jitter, p99</dt><dd>{span(collector?.start_us_p99)}</dd>
        <dt>stalled intervals</dt><dd class={(collector?.stalled ?? 0) > 0 ? "kin" : ""}>{count(collector?.stalled)}</dd>
        <dt>dropped here</dt><dd class={(collector?.socket_drops ?? 0) > 0 ? "shu" : ""}>{count(collector?.socket_drops)}</dd>
        <dt>kept</dt><dd>{quantityText(told.log_bytes + told.parquet_bytes + told.summary_bytes, "bytes")}</dd>
      </dl>
    </section>
  );
}
