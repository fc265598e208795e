import type { Scope } from "../domain/keys/principal.ts";
import type { CallScope } from "./calls/call.ts";
import { ROUTES } from "./routes.ts";

/** Routes that none of these open are only for operators of the nodes. */
const CALLERS_SCOPES: readonly Scope[] = ["read", "submit", "reserve", "sign"];

export function isOperators({ scope, or, own }: CallScope): boolean {
  return !CALLERS_SCOPES.some((each) => each === scope || each === or || each === own);
}

/** Every route that is not open, by method and path. A route that is not here cannot be registered. */
export const ROUTE_SCOPES: Readonly<Record<string, CallScope>> = Object.fromEntries(
  ROUTES.flatMap(({ at, scope }) => (scope === "open" ? [] : [[at, scope]])),
);
