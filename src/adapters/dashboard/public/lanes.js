import { callApi } from "./api.js";
import { byId, etherOf, h, hexOf, plural } from "./dom.js";

/** Draws the lanes and returns them, for the parts of the page that need to know the signers. */
export async function refreshLanes() {
  const { items } = await callApi("/signers?limit=500");
  const lanes = [...items].sort(byActivity);
  byId("lane-list").replaceChildren(...lanes.map(laneOf));
  for (const { signer, balance } of lanes.slice(0, MOST_ASKED)) if (balance === null) void askAfresh(signer);
  return items;
}

/** The node shows balances that it has asked for; of those at the top it is told to ask, once. */
const MOST_ASKED = 12;
const asked = new Set();

async function askAfresh(signer) {
  if (asked.has(signer)) return;
  asked.add(signer);
  await callApi(`/signers/${signer}?fresh=true`).catch(() => undefined);
}

/** Lanes in use first; the many idle accounts of a dev node should not push them off the screen. */
function byActivity(a, b) {
  return rank(b) - rank(a);
}

function rank({ pending, stuck, cursor }) {
  if (pending + stuck > 0) return 2;
  return cursor === null ? 0 : 1;
}

function laneOf(lane) {
  const { chainId, signer, cursor, pending, confirmed, failed, stuck, holes, balance, suspendedBy } = lane;
  const warnings = [
    stuck > 0 ? `${stuck} stuck` : null,
    failed > 0 ? `${failed} failed` : null,
    holes.length > 0 ? plural(holes.length, "hole") : null,
    suspendedBy === "HISTORY" ? "waits for an operator: commits may be lost" : null,
    suspendedBy === "OPERATOR" ? "suspended" : null,
  ].filter((warning) => warning !== null);
  return h(
    "li",
    { class: cursor === null ? "lane unused" : "lane" },
    h("p", { class: "lane-name" }, hexOf(signer), h("span", { class: "quiet" }, `chain ${chainId}`)),
    h(
      "dl",
      { class: "counts" },
      count("cursor", cursor === null ? "unused" : cursor.toLocaleString("en")),
      count("pending", pending.toLocaleString("en")),
      count("confirmed", confirmed.toLocaleString("en")),
      count("ether", balance === null ? "unknown" : etherOf(balance)),
    ),
    h("p", { class: "quiet" }, ownerText(lane)),
    warnings.length === 0 ? null : h("p", { class: "bad" }, warnings.join(", ")),
  );
}

function count(name, value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value));
}

function ownerText({ owner, lease }) {
  if (owner === null) return "no owner right now";
  return `owned by ${owner.nodeId}, fencing token ${lease?.fencingToken ?? "unknown"}`;
}
