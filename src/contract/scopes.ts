import type { Scope } from "../domain/keys/principal.ts";
import type { CallScope } from "./calls/call.ts";
import { ROUTES } from "./routes.ts";

/** Scopes of ordinary callers. Routes that need another scope are only for operators of the nodes. */
const CALLERS_SCOPES: readonly Scope[] = ["read", "submit", "reserve", "sign"];

export function isOperators({ scope, or, own }: CallScope): boolean {
  return !CALLERS_SCOPES.some((each) => each === scope || each === or || each === own);
}

/**
 * Required scope of every route that needs an API key, by method and path. A route that is missing here cannot be
 * registered.
 */
export const ROUTE_SCOPES: Readonly<Record<string, CallScope>> = Object.fromEntries(
  ROUTES.flatMap(({ at, scope }) => (scope === "open" ? [] : [[at, scope]])),
);
