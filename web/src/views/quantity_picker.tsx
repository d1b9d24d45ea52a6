/** Which quantity is shown, and whether a row is a device or a single series. */

import type { Quantity } from "../address/address.ts";
import type { RecordingBody } from "../api/types.ts";
import { drawable, recording, shownQuantity, tableOf } from "../session/recordings.ts";
import { show, view } from "../session/view.ts";

/** Tables that have quantities of devices; the others tell about readings. */
const ROLES = new Set(["readings", "answers"]);

interface Props {
  /** Whose quantities they are, where it is not the shown recording, and which of them is shown. */
  readonly of?: RecordingBody;
  readonly quantity?: Quantity;
}

export function QuantityPicker({ of, quantity }: Props) {
  const current = of ?? recording.value;
  const tables = (current?.tables ?? []).filter(
    ({ role, labels, columns }) => ROLES.has(role) && labels.includes("device") && columns.some(drawable),
  );
  const { table, column } = quantity ?? shownQuantity.value;
  return (
    <div class="row">
      <select
        aria-label="Quantity"
        value={`${table}.${column}`}
        onChange={(event) => {
          const [table_ = "", column_ = ""] = event.currentTarget.value.split(".");
          show({ quantity: { table: table_, column: column_ }, also: null }, true);
        }}
      >
        {tables.map((one) => (
          <optgroup key={one.name} label={one.title}>
            {one.columns.filter(drawable).map((of) => (
              <option key={of.name} value={`${one.name}.${of.name}`} title={of.doc}>
                {of.words}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
      {of === undefined && tableOf(current, table)?.part != null && (
        <button
          type="button"
          class="tag"
          aria-pressed={view.value.rows === "series"}
          title="a row for each interface, disk or object"
          onClick={() => show({ rows: view.value.rows === "series" ? "devices" : "series" })}
        >
          split
        </button>
      )}
    </div>
  );
}
