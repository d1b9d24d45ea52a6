/** All keys, on request. */

import { useEffect, useRef } from "preact/hooks";
import { helpOpen, KEYS, PICTURE_KEYS } from "./keys.ts";

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = helpOpen.value;
  useEffect(() => {
    if (open && dialog.current?.open === false) dialog.current.showModal();
    if (!open && dialog.current?.open === true) dialog.current.close();
  }, [open]);
  return (
    <dialog
      ref={dialog}
      aria-labelledby="keys-title"
      onClose={() => {
        helpOpen.value = false;
      }}
    >
      <h2>
        <span id="keys-title">All keys</span>{" "}
        <button
          type="button"
          class="tag"
          onClick={() => {
            helpOpen.value = false;
          }}
        >
          close
        </button>
      </h2>
      <dl>
        {[...KEYS, ...PICTURE_KEYS].map(({ shown, does }) => [
          <dt key={shown}>
            <kbd>{shown}</kbd>
          </dt>,
          <dd key={does}>{does}</dd>,
        ])}
      </dl>
    </dialog>
  );
}
