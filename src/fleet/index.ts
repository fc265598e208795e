/**
 * `fencepost/fleet`: a client of several cells. A cell is a deployment with its own database, signers, keys and feed; no
 * promise of Fencepost spans two. The fleet finds the cell of each signer, and follows all feeds.
 */
import { backOffMs, type CallOptions, newRequestId, pause, underDeadline } from "../client/deadline.ts";
import { FencepostError, ofRequest } from "../client/error-classes.ts";
import type { FencepostFace } from "../client/face.ts";
import { type ClientOptions, createClient, type FencepostClient } from "../client/index.ts";
import { Directory, type Wanted } from "./directory.ts";
import { type FleetCompletion, type FleetOutcomesQuery, followCells } from "./follow-cells.ts";

export type { FleetCompletion, FleetOutcomesQuery, FleetPlace, FleetStore } from "./follow-cells.ts";
export { moveToCell, type SignerMove } from "./move-to-cell.ts";

export interface FleetOptions {
  /** The cells by name, each as for `createClient`. A name is stored in positions of the feeds: keep it. */
  readonly cells: Readonly<Record<string, ClientOptions>>;
  /** Time limit of each send in ms, repeats and moves included; default 30,000. */
  readonly timeoutMs?: number;
}

/** Calls that go to the cell of their signer, or to the cell that has the transaction. */
type Routed = Pick<FencepostFace, "send" | "sign" | "signer" | "get" | "getByRequest" | "list" | "waitFor" | "handle">;

export interface Fleet extends Routed {
  /** The client of each cell, for every other call: operators' actions, pools, keys, policies. */
  readonly cells: Readonly<Record<string, FencepostClient>>;
  /** Name of the cell that has a signer. Throws if two have it, or none. */
  cellOf(signer: string, chainId?: number): Promise<string>;
  /**
   * Receives every outcome of every cell, endlessly, as it happens. The order of one cell's feed is kept; between two
   * cells there is none.
   */
  outcomes(query?: FleetOutcomesQuery, options?: CallOptions): AsyncGenerator<FleetCompletion, void, undefined>;
}

const DEFAULT_TIMEOUT_MS = 30_000;

/**
 * Creates a client of several cells. It asks each cell once for a signer, and again when that cell refuses it.
 *
 * @example
 * const fleet = createFleet({ cells: { a: { url: "https://a.internal", apiKey }, b: { url: "https://b.internal", apiKey } } });
 * const tx = await fleet.send({ signer, requestId: "order-42", payload: { to, value: 1n } });
 */
export function createFleet(options: FleetOptions): Fleet {
  const entries = Object.entries(options.cells).map(([cell, each]) => [cell, createClient(each)] as const);
  const cells: Readonly<Record<string, FencepostClient>> = Object.fromEntries(entries);
  const router = new Router(cells, options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
  const everywhere = <T>(ask: (client: FencepostClient) => Promise<T>) => firstFound(Object.values(cells).map(ask));
  return {
    cells,
    cellOf: async (signer, chainId) => (await router.directory.find({ signer, chainId })).cell,
    send: (intent, call) => {
      const named = { ...intent, requestId: intent.requestId ?? newRequestId() };
      return router.deliver(named, call, (client, limits) => client.send(named, limits));
    },
    sign: (request, call) => {
      const named = { ...request, requestId: request.requestId ?? newRequestId() };
      return router.deliver(named, call, (client, limits) => client.sign(named, limits));
    },
    signer: async (address, call) => (await router.clientOf({ signer: address })).signer(address, call),
    get: (txId, call) => everywhere((client) => client.get(txId, call)),
    handle: (txId, call) => everywhere((client) => client.handle(txId, call)),
    getByRequest: (request, call) => everywhere((client) => client.getByRequest(request, call)),
    waitFor: async (txId, wait) => {
      const { client } = await everywhere(async (each) => ({
        client: each,
        found: await each.get(txId, limitsOf(wait)),
      }));
      return client.waitFor(txId, wait);
    },
    list: async (query, call) => {
      const pages = await Promise.all(Object.values(cells).map((client) => client.list(query, call)));
      return { items: pages.flatMap(({ items }) => items), next: null };
    },
    outcomes: (query = {}, call = {}) => followCells(cells, query, call),
  };
}

function limitsOf({ signal, timeoutMs }: CallOptions = {}): CallOptions {
  return { ...(signal && { signal }), ...(timeoutMs !== undefined && { timeoutMs }) };
}

/** The first answer that is not an error. If there is none: NOT_FOUND only if every cell said so. */
async function firstFound<T>(asked: readonly Promise<T>[]): Promise<T> {
  return Promise.any(asked).catch((error: AggregateError) => {
    const errors = error.errors as readonly unknown[];
    throw errors.find((each) => !(each instanceof FencepostError && each.code === "NOT_FOUND")) ?? errors[0];
  });
}

interface Named extends Wanted {
  readonly requestId: string;
}

type Deliver<T> = (client: FencepostClient, limits: CallOptions) => Promise<T>;

/** Delivers requests to the cell of their signer, also while it moves. */
class Router {
  readonly directory: Directory;
  private readonly cells: Readonly<Record<string, FencepostClient>>;
  private readonly timeoutMs: number;

  constructor(cells: Router["cells"], timeoutMs: number) {
    this.cells = cells;
    this.timeoutMs = timeoutMs;
    this.directory = new Directory(cells);
  }

  async clientOf(wanted: Wanted, signal?: AbortSignal): Promise<FencepostClient> {
    const { cell } = await this.directory.find(wanted, signal);
    return this.cells[cell] as FencepostClient;
  }

  /**
   * Delivers a request under its request id. A cell that has not got the signer refuses it for good, so it goes to the
   * cell that has; an answer that leaves the outcome open is the caller's, who repeats it under the same id.
   */
  deliver<T>(named: Named, call: CallOptions | undefined, work: Deliver<T>): Promise<T> {
    const limits = { timeoutMs: this.timeoutMs, ...limitsOf(call) };
    return underDeadline(`no cell has taken ${named.requestId}`, limits, async ({ signal, leftMs }) => {
      for (let failures = 0; ; failures++) {
        let isAsked = false;
        try {
          const client = await this.clientOf(named, signal);
          isAsked = true;
          return await work(client, { signal, timeoutMs: leftMs() });
        } catch (error) {
          if (isSpent(error)) return this.askFormer(named, work, error, { signal, timeoutMs: leftMs() });
          const waitMs = backOffMs(failures);
          if (!isElsewhere(error, isAsked) || waitMs >= leftMs()) throw withId(error, named);
          this.directory.forget(named);
          await pause(waitMs, signal);
        }
      }
    });
  }

  /**
   * A request id that was used at a former cell of the signer: that cell answers with its transaction, and can give no
   * nonce to a new one.
   */
  private async askFormer<T>(named: Named, work: Deliver<T>, spent: unknown, limits: CallOptions): Promise<T> {
    const { left } = await this.directory.find(named, limits.signal);
    const asked = left.map((cell) => work(this.cells[cell] as FencepostClient, limits));
    return Promise.any(asked).catch(() => {
      throw withId(spent, named);
    });
  }
}

/** True if the signer is moving, or the cell that was asked has not got it: nothing was done. */
function isElsewhere(error: unknown, isAsked: boolean): boolean {
  if (!(error instanceof FencepostError)) return false;
  return error.code === "SIGNER_MOVED" || (isAsked && error.code === "UNKNOWN_SIGNER");
}

/** True if the request id belongs to a transaction that this cell does not have. */
function isSpent(error: unknown): boolean {
  return error instanceof FencepostError && error.code === "REQUEST_ID_REUSED" && error.txId === undefined;
}

function withId(error: unknown, { requestId }: Named) {
  return error instanceof FencepostError ? ofRequest(error, requestId) : error;
}
