import { effect } from "@preact/signals";
import { render } from "preact";
import { App } from "./app.tsx";
import { listenToKeys } from "./keys/keys.ts";
import { exposeCounters, requestPaint } from "./paint/painter.ts";
import { cursor } from "./session/cursor.ts";
import { events } from "./session/events.ts";
import { health } from "./session/health.ts";
import { followAddress, view } from "./session/view.ts";
import { inks } from "./theme/theme.ts";
import { fitAllText } from "./words/fit.ts";
import "./style.css";

fitAllText();
exposeCounters();
followAddress();
listenToKeys();
// Pictures read these when they are painted, and are not rendered anew for them.
effect(() => {
  void [view.value, cursor.value, inks.value, health.value, events.value];
  requestPaint();
});
const page = document.getElementById("page");
if (page !== null) render(<App />, page);
