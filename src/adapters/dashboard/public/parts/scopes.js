/**
 * Actions that this tab's API key may take. The node checks every request again; the page only leaves out buttons that
 * it would refuse.
 *
 * @import { Action, ActionSubject } from "../../page-types.ts"
 */
import { h } from "../dom.js";
import { may, world } from "../world.js";
import { actionButton } from "./action-dialog.js";
import { meaningOf, wordOf } from "./actions.js";

/**
 * Scopes of which the action needs one.
 *
 * @param {Action} action
 */
export function scopesFor(action) {
  return meaningOf(action).scopes ?? ["operate"];
}

/**
 * @param {Action} action
 * @param {ActionSubject} [about]
 */
export function mayAct(action, { transaction, signature } = {}) {
  const scopes = scopesFor(action);
  const owner = (transaction ?? signature)?.owner ?? null;
  const isOwn = owner !== null && owner === world.me?.key;
  // The key that created a transaction may cancel it, and may not approve it: four eyes.
  if (isOwn && scopes.includes("approve")) return false;
  if (isOwn && wordOf(action) === "cancel" && may("submit")) return true;
  return scopes.some(may);
}

/**
 * Buttons of those actions that the key may take.
 *
 * @param {readonly Action[]} actions
 * @param {ActionSubject} about
 * @param {() => void} refresh
 */
export function actionButtons(actions, about, refresh) {
  const allowed = actions.filter((action) => mayAct(action, about));
  return allowed.map((action) =>
    h("span", { key: action.path + wordOf(action) }, actionButton(action, about, refresh)),
  );
}

/**
 * Says why actions have no button; null if every one has.
 *
 * @param {readonly Action[]} actions
 * @param {ActionSubject} [about]
 */
export function withheld(actions, about) {
  const forbidden = actions.filter((action) => action.method !== "GET" && !mayAct(action, about));
  const scopes = [...new Set(forbidden.map((action) => scopesFor(action)[0]))];
  if (world.me === null || scopes.length === 0) return null;
  const name = world.me.key === null ? "This page" : `Your key ${world.me.key}`;
  return h(
    "p.quiet.withheld",
    `${name} has ${world.me.scopes.join(", ")}: no button for what needs ${scopes.join(" or ")}${forbidden.some(isFourEyes) ? " of another key" : ""}.`,
  );
}

/** @param {Action} action */
function isFourEyes(action) {
  return scopesFor(action).includes("approve");
}
