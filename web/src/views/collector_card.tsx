/** How the collector itself does: jitter, cost, what it kept and what it lost. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { apiPath, getJson, recordingPath } from "../api/client.ts";
import { NOT_READ, poll, type Told } from "../api/poll.ts";
import type { InventoryBody } from "../api/types.ts";
import { recording } from "../session/recordings.ts";
import { count, quantityText, span } from "../words/quantity.ts";
import { AsOf, Unread } from "./told.tsx";

const inventory = signal<Told<InventoryBody>>(NOT_READ);

const REFRESH_MS = 5000;

/** Keeps the inventory of the recording fresh while anybody shows it. */
export function useInventory(): Told<InventoryBody> {
  const id = recording.value?.id;
  useEffect(() => {
    inventory.value = NOT_READ;
    if (id === undefined) return undefined;
    return poll(
      (stop) => getJson<InventoryBody>(apiPath(recordingPath(id, "inventory")), stop),
      REFRESH_MS,
      (told) => {
        inventory.value = told;
      },
    );
  }, [id]);
  return inventory.value;
}

export function CollectorCard() {
  const answer = useInventory();
  const told = answer.value;
  if (told === null)
    return (
      <section class="card" aria-label="Collector">
        <h2>Collector</h2>
        <Unread told={answer} />
      </section>
    );
  const { collector } = told;
  return (
    <section class="card" aria-label="Collector">
      <h2>
        Collector <AsOf atMs={recording.value?.running === true ? answer.atMs : 0} />
      </h2>
      <dl>
        <dt>interval complete, p99</dt>
        <dd>{span(collector?.complete_us_p99)}</dd>
        <dt>start jitter, p99</dt>
        <dd>{span(collector?.start_us_p99)}</dd>
        <dt>stalled intervals</dt>
        <dd class={(collector?.stalled ?? 0) > 0 ? "kin" : ""}>{count(collector?.stalled)}</dd>
        <dt>dropped here</dt>
        <dd class={(collector?.socket_drops ?? 0) > 0 ? "shu" : ""}>{count(collector?.socket_drops)}</dd>
        <dt>kept</dt>
        <dd>{quantityText(told.log_bytes + told.parquet_bytes + told.summary_bytes, "bytes")}</dd>
      </dl>
    </section>
  );
}
