import type { TObject, TSchema } from "typebox";
import type { ErrorCode } from "../../domain/errors.ts";
import type { Scope } from "../../domain/keys/principal.ts";

/** Scope that a call requires of the API key. */
export interface CallScope {
  readonly scope: Scope;
  /** Also sufficient. */
  readonly or?: Scope;
  /** Not for the key that made the transaction: another key must approve it. */
  readonly othersOnly?: true;
  /** Enough if the transaction or the reservation belongs to that key. */
  readonly own?: Scope;
}

export const READ: CallScope = { scope: "read" };
export const SUBMIT: CallScope = { scope: "submit" };
export const OPERATE: CallScope = { scope: "operate" };
export const ADMIN: CallScope = { scope: "admin" };

export interface Answer {
  readonly description: string;
  readonly schema?: TSchema;
  /** Instead of JSON. */
  readonly contentType?: string;
  /** Members of its example that differ from those of the schema. */
  readonly example?: object;
  readonly location?: Location;
}

/** `Location` of what was made: members of the answer are filled in. */
export interface Location {
  readonly path: string;
  readonly description: string;
}

export const TRANSACTION_PLACE: Location = { path: "/api/v1/tx/{txId}", description: "Path of the transaction." };

/** The answers of most calls: one. */
export const ok = (description: string, schema: TSchema) => ({ 200: { description, schema } });

/**
 * A call of the API, declared once, under its operation id. HTTP routes, OpenAPI, scopes, the library's calls and the paths
 * of the SDK are loops over the declarations. The method `does` of the application's record performs it, and gets the
 * parameters of the path, then the query, the body and the name of who acts, as far as the call has them.
 */
export interface Call {
  /** Method and path, in OpenAPI's notation. */
  readonly at: `${"get" | "post" | "put" | "delete"} /${string}`;
  readonly scope: CallScope | "open";
  /** Done by the owner of the lane, to which any node forwards it. Absent: done by the node that is asked. */
  readonly by?: "owner";
  /** Its name in the client and in the library. Absent: the client's own code makes its request. */
  readonly face?: string;
  /** Its name in the application, if that is another one. With neither name, its route is written by hand. */
  readonly does?: string;
  /** An operator's action, by the name that the application gets in its one argument. */
  readonly action?: string;
  /**
   * Arguments that are not the usual ones: a member of path, query or body by its name, `query` or `body` (the rest of it),
   * `actor`, or `action`: one object with the path, the body as `request`, who acts, and the idempotency key.
   */
  readonly takes?: readonly string[];
  /** The actor is kept for the audit. */
  readonly audited?: true;
  readonly summary: string;
  readonly description?: string;
  readonly query?: TObject;
  /** At least one of these parameters of the query. */
  readonly needs?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: TSchema;
  /** Bodies by their names, if the schema's own example does not do. */
  readonly examples?: Readonly<Record<string, unknown>>;
  /** The most that its body may have, if that is not the usual. */
  readonly bodyBytes?: number;
  /** Counts against the rate of the key. */
  readonly metered?: true;
  /** Let in at once, also under overload. */
  readonly urgent?: true;
  /** Answers by HTTP status. Of two, the second one means: not new, or not durable yet. */
  readonly answers: Readonly<Record<number, Answer>>;
  /** No cache may keep the answer. */
  readonly noStore?: true;
  /** Besides what every call may answer. */
  readonly errors?: readonly ErrorCode[];
}

/** Fields that every operator's action has. */
export interface ActionCall extends Pick<Call, "summary" | "description" | "errors" | "examples"> {
  readonly body: TSchema;
  readonly scope?: CallScope;
}

export type Calls = Readonly<Record<string, Call>>;

/** The method of the application's record; undefined: its route is written by hand. */
export function methodOf({ does, face }: Call): string | undefined {
  return does ?? face;
}

/** Keeps paths and names as literal types: the client's table of paths is checked against them. */
export function declared<const C extends Calls>(calls: C): C {
  return calls;
}

/** Limit of one transaction; and of an action, because a replacement has a payload like a create's. */
export const TRANSACTION_BYTES = 256 * 1024;

export const ACTION_HEADERS = {
  "Idempotency-Key":
    "1 to 255 printable ASCII characters, of the caller's own. An action that was performed under it is not performed again: its repeat answers with the present state. With another body it is 409 REQUEST_ID_REUSED. A refused action leaves no key behind.",
};
