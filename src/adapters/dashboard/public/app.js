import { readReadiness } from "./api.js";
import { byId, h } from "./dom.js";
import { followFeed } from "./feed.js";
import { refreshLanes } from "./lanes.js";
import { listenForSending, offerSending } from "./send.js";
import { refreshTransactions, tickAges } from "./transactions.js";

const TRANSACTIONS_EVERY_MS = 1_000;
const LANES_EVERY_MS = 3_000;
const READINESS_EVERY_MS = 5_000;
const RETRY_AFTER_MS = 2_000;

let lanes = [];

/** Repeats `work`, never twice at once, sooner when poked, and not at all while the page is hidden. */
function loop(work, everyMs) {
  let timer;
  let running = false;
  let poked = false;
  const run = async () => {
    clearTimeout(timer);
    if (running) {
      poked = true;
      return;
    }
    running = true;
    poked = false;
    await guarded(work);
    running = false;
    timer = setTimeout(run, poked ? 0 : document.hidden ? everyMs * 10 : everyMs);
  };
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) void run();
  });
  return run;
}

/** Loop → what it has to complain about right now. One that goes well must not hide another that does not. */
const complaints = new Map();

async function guarded(work) {
  try {
    await work();
    complaints.delete(work);
  } catch (error) {
    complaints.set(work, error.status === undefined ? "The node does not answer. Trying again." : error.message);
  }
  const [text = ""] = complaints.values();
  const notice = byId("notice");
  if (notice.textContent !== text) notice.textContent = text;
  notice.hidden = text === "";
}

async function showReadiness() {
  const { ready, database, chains, draining } = await readReadiness();
  const signs = [
    sign(ready, ready ? "ready" : draining ? "draining" : "not ready"),
    sign(database, database ? "database" : "database does not answer"),
    ...chains.map(({ chainId, reachable, head }) =>
      sign(
        reachable,
        reachable ? `chain ${chainId}, block ${head?.toLocaleString("en")}` : `chain ${chainId} does not answer`,
      ),
    ),
  ];
  byId("readiness").replaceChildren(...signs);
}

function sign(good, text) {
  return h("li", { class: good ? "good" : "bad" }, text);
}

async function followForEver(onCompletions) {
  const position = {};
  for (;;) {
    try {
      await followFeed(position, onCompletions);
    } catch {
      byId("completions-state").textContent = "interrupted, trying again";
      await new Promise((resolve) => setTimeout(resolve, RETRY_AFTER_MS));
    }
  }
}

const updateTransactions = loop(() => refreshTransactions(lanes), TRANSACTIONS_EVERY_MS);
const updateLanes = loop(async () => {
  lanes = await refreshLanes();
  offerSending(lanes);
}, LANES_EVERY_MS);
const updateReadiness = loop(showReadiness, READINESS_EVERY_MS);
const updateAll = () => {
  void updateTransactions();
  void updateLanes();
};

listenForSending(updateAll);
setInterval(tickAges, 1_000);
void updateReadiness();
void updateLanes().then(updateTransactions);
void followForEver(updateAll);
