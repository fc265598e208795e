import type { Call } from "./calls/call.ts";
import { GROUPS, type Tag } from "./calls/index.ts";

/** A declared call as an HTTP route. A test compares the table of routes with the server's. */
export interface Route extends Call {
  readonly operationId: string;
  readonly tag: Tag;
  readonly method: string;
  readonly path: string;
  /** True if the route needs no API key. */
  readonly open: boolean;
}

export const ROUTES: readonly Route[] = GROUPS.flatMap(([tag, calls]) =>
  Object.entries<Call>(calls).map(([operationId, call]) => {
    const [method = "", path = ""] = call.at.split(" ");
    return { ...call, operationId, tag, method, path, open: call.scope === "open" };
  }),
);
