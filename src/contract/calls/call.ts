import type { TObject, TSchema } from "typebox";
import type { ErrorCode } from "../../domain/errors.ts";
import type { Scope } from "../../domain/keys/principal.ts";

/** Scope that a call requires of the API key. */
export interface CallScope {
  readonly scope: Scope;
  /** Another scope that also permits the call. */
  readonly or?: Scope;
  /**
   * True if the key that created the transaction may not make this call, such as an approval, which needs another key.
   */
  readonly othersOnly?: true;
  /** Scope that permits the call if the transaction or the reservation belongs to the key. */
  readonly own?: Scope;
}

export const READ: CallScope = { scope: "read" };
export const SUBMIT: CallScope = { scope: "submit" };
export const SIGN: CallScope = { scope: "sign" };
export const OPERATE: CallScope = { scope: "operate" };
export const APPROVE: CallScope = { scope: "approve", othersOnly: true };
export const ADMIN: CallScope = { scope: "admin" };

export interface Answer {
  readonly description: string;
  readonly schema?: TSchema;
  /** Content type of the response, if it is not JSON. */
  readonly contentType?: string;
  /** Members of the example response that replace those of the schema's example. */
  readonly example?: object;
  /** Example of a response without a schema. */
  readonly exampleText?: string;
  readonly location?: Location;
}

/** `Location` header of a created object: members of the response are filled into the path. */
export interface Location {
  readonly path: string;
  readonly description: string;
}

export const TRANSACTION_PLACE: Location = { path: "/api/v1/tx/{txId}", description: "Path of the transaction." };

/** Declares the responses of a call whose only success status is 200. */
export const ok = <const S extends TSchema>(description: string, schema: S) => ({ 200: { description, schema } });

/**
 * A call of the API, declared once, under its operation id. HTTP routes, OpenAPI, scopes, the library's calls and the
 * SDK's paths are generated from the declarations. The application method named by `does` performs the call. Its
 * arguments are the path parameters, then the query, the body and the actor's name, if the call has them.
 */
export interface Call {
  /** HTTP method and path of the call, in OpenAPI's notation. */
  readonly at: `${"get" | "post" | "put" | "delete"} /${string}`;
  readonly scope: CallScope | "open";
  /**
   * "owner": the lane's owner performs the call, and any other node forwards it there. If absent, the node that
   * receives the call performs it.
   */
  readonly by?: "owner";
  /** Name of the call in the client and in the library. If absent, the client's own code makes the request. */
  readonly face?: string;
  /**
   * Name of the application's method that performs the call, if it differs from `face`. If both are absent, the route
   * is written by hand.
   */
  readonly does?: string;
  /** Name of an operator's action. It is passed to the application's method inside the method's only argument. */
  readonly action?: string;
  /**
   * Arguments of the application's method, if they are not the usual ones. Each is the name of a member of path, query
   * or body; `query` or `body`, for their remaining members; `actor`; or `action`, for one object with the path, the
   * body as `request`, the actor, and the idempotency key.
   */
  readonly takes?: readonly string[];
  /** True if the caller's name is stored for the audit. */
  readonly audited?: true;
  readonly summary: string;
  readonly description?: string;
  readonly query?: TObject;
  /** Names of query parameters of which at least one is required. */
  readonly needs?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: TSchema;
  /** Example bodies by name, if the schema's own example is not sufficient. */
  readonly examples?: Readonly<Record<string, unknown>>;
  /** Maximum size of the body in bytes, if it is not the usual one. */
  readonly bodyBytes?: number;
  /** True if the call counts against the API key's rate limit. */
  readonly metered?: true;
  /** True if the call is admitted at once, even under overload. */
  readonly urgent?: true;
  /**
   * Responses by HTTP status. If there are two, the second means that the object existed already, or that the result is
   * not durable yet.
   */
  readonly answers: Readonly<Record<number, Answer>>;
  /** True if the response must not be cached. */
  readonly noStore?: true;
  /** Error codes of this call, besides those common to every call. */
  readonly errors?: readonly ErrorCode[];
}

/** The members of a declaration that differ between operators' actions. */
export interface ActionCall extends Pick<Call, "summary" | "description" | "errors" | "examples"> {
  readonly body: TSchema;
  readonly scope?: CallScope;
}

export type Calls = Readonly<Record<string, Call>>;

/** Name of the application's method that performs the call; undefined if the route's code is written by hand. */
export function methodOf({ does, face }: Call): string | undefined {
  return does ?? face;
}

/**
 * Returns the declarations with literal types of paths and names: the client's table of paths is checked against them.
 */
export function declared<const C extends Calls>(calls: C): C {
  return calls;
}

/**
 * Maximum body size of one transaction. It also applies to an operator's action, because a replacement has a payload
 * like a create's.
 */
export const TRANSACTION_BYTES = 256 * 1024;

export const ACTION_HEADERS = {
  "Idempotency-Key":
    "1 to 255 printable ASCII characters, of the caller's own. An action that was performed under it is not performed again: its repeat answers with the present state. With another body it is 409 REQUEST_ID_REUSED. A refused action leaves no key behind.",
};
