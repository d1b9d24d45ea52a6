import { render } from "preact";
import { App } from "./app.tsx";
import { listenToKeys } from "./keys/keys.ts";
import { exposeCounters } from "./paint/painter.ts";
import { followAddress } from "./session/view.ts";
import "./style.css";

exposeCounters();
followAddress();
listenToKeys();
const page = document.getElementById("page");
if (page !== null) render(<App />, page);
