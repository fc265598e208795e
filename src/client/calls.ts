/** The client's methods, generated from its table of paths. They work over any transport to a node. */
import type { SignerLane } from "../contract/schemas/signers.ts";
import { type CallOptions, newRequestId, type OrderOptions } from "./deadline.ts";
import { FencepostError, ofRequest } from "./error-classes.ts";
import { CALL_PATHS, type CallPath, type FencepostFace } from "./face.ts";
import { followCompletions } from "./follow.ts";
import { followOutcomes, type PageSource } from "./outcomes.ts";
import type { Call, Transport } from "./transport.ts";

type Tabled = Pick<FencepostFace, keyof typeof CALL_PATHS>;
export type OrdinaryCalls = Tabled & Pick<FencepostFace, "completions" | "outcomes" | "signers" | "kill" | "endKill">;

const LARGEST_PAGE = 500;

/** `streams`: opens a stream of outcomes; without it, they are read page by page. */
export function ordinaryCalls(transport: Transport, streams?: () => PageSource): OrdinaryCalls {
  const made = Object.entries<CallPath>(CALL_PATHS).map(([name, path]) => [name, callBy(transport, path)]);
  const tabled = Object.fromEntries(made) as Tabled;
  const killing =
    (method: "post" | "delete"): FencepostFace["kill"] =>
    ({ signer, ...body } = {}, options = {}) => {
      const subject =
        signer === undefined ? { at: `${method} /kill` } : { at: `${method} /signers/{signer}/kill`, params: [signer] };
      return transport({ ...subject, body, keyed: true, ...options });
    };
  const paged: PageSource = { readPage: tabled.completionsPage, close: () => undefined };
  return {
    ...tabled,
    completions: (query = {}, options = {}) => followCompletions(tabled.completionsPage, query, options),
    outcomes: (query = {}, options = {}) => followOutcomes(streams?.() ?? paged, query, options),
    signers: (options) => everySigner(tabled.signersPage, options),
    kill: killing("post"),
    endKill: killing("delete"),
  };
}

/** Builds one call. Its arguments are the path parameters, then the query or the body, then the options. */
function callBy(transport: Transport, path: CallPath) {
  const { at, items, named } = path;
  const names = at.split("{").length - 1;
  const hasBody = at.startsWith("p");
  const hasSubject = path.query === true || (hasBody && path.body !== "none");
  return async (...given: readonly unknown[]) => {
    const [subject, options = {}] = hasSubject ? given.slice(names) : [{}, given[names]];
    const { signal, timeoutMs, idempotencyKey, ...others } = options as OrderOptions;
    const query = { ...(path.query === true && (subject as object)), ...inQuery(path, others) };
    const { wait = 0 } = query as { readonly wait?: number };
    const call: Call = {
      ...path,
      params: given.slice(0, names) as readonly string[],
      query,
      heldMs: wait * 1000,
      ...(hasBody && bodyOf(path, subject)),
      ...(signal && { signal }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    };
    const answered = transport<{ readonly items: unknown }>(call);
    const answer = await (named ? answered.catch(rethrowOf(call.body as Asked)) : answered);
    return items ? answer.items : answer;
  };
}

function inQuery({ options = {} }: CallPath, given: object): object {
  const known = Object.entries(given).filter(([name]) => name in options);
  return Object.fromEntries(known.map(([name, value]) => [options[name], value]));
}

function bodyOf({ body: member, named }: CallPath, given: unknown): Pick<Call, "body" | "lane"> {
  if (named !== true) return { body: member === undefined || member === "none" ? given : { [member]: given } };
  const body = withRequestId(given as Asked);
  return { body, lane: laneOf(body) };
}

export interface Asked {
  readonly requestId?: string;
  /** Signer of the request: an address, or a pool from which the node chooses a signer. */
  readonly signer?: unknown;
  readonly chainId?: number;
}

/** Adds a request id if the caller gave none. A value that is not an object is passed on, and the node refuses it. */
export const withRequestId = <T extends Asked>(asked: T): T & { readonly requestId: string } =>
  asked && { ...asked, requestId: asked.requestId ?? newRequestId() };

export const laneOf = (asked: Asked) => `${asked?.chainId ?? ""}${JSON.stringify(asked?.signer)}`.toLowerCase();

/** Adds the request id to an error: a caller that gave none needs the generated one. */
export const rethrowOf = (asked: Asked) => (error: unknown) => {
  throw error instanceof FencepostError ? ofRequest(error, asked?.requestId) : error;
};

async function everySigner(readPage: FencepostFace["signersPage"], options: CallOptions | undefined) {
  const lanes: SignerLane[] = [];
  for (let after: string | null | undefined; after !== null; ) {
    const page = await readPage({ limit: LARGEST_PAGE, ...(after && { after }) }, options);
    lanes.push(...page.items);
    // A server without paging sends no `next`: then there are no more pages.
    after = page.next ?? null;
  }
  return lanes;
}
