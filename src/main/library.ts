import { setMaxListeners } from "node:events";
import { createCodec } from "../adapters/evm/codec.ts";
import { createdView as httpView } from "../adapters/http/views.ts";
import { type CallerTransaction, intakeClientOf } from "../adapters/postgres/caller-transaction.ts";
import { insertIntake } from "../adapters/postgres/insert-intake.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { createEntropy } from "../adapters/system/entropy.ts";
import { readEnvironment } from "../adapters/system/environment.ts";
import type { TelemetrySink } from "../adapters/system/telemetry.ts";
import type {
  CompletionsQuery,
  Created,
  CreateRequest,
  Include,
  LaneAction,
  SignerView,
  TransactionAction,
  TransactionView,
} from "../application/api.ts";
import { normalise, parseChainId } from "../application/requests/normalise.ts";
import { type NonceCalls, type UsesNonce, withNonce } from "../client/with-nonce.ts";
import type { CreatedTransaction } from "../contract/create.ts";
import type { ReserveNonce } from "../contract/nonces.ts";
import { defined } from "../domain/defined.ts";
import { FencepostError } from "../domain/errors.ts";
import type { Address, Lane } from "../domain/lane.ts";
import type { RepricingStrategy } from "../domain/repricing.ts";
import type { Payload, Receipt } from "../domain/transaction.ts";
import { isSettled } from "../domain/transitions.ts";
import type { Block } from "../ports/chain.ts";
import type { CompletionRecord } from "../ports/query-store.ts";
import type { StuckResolutionHook } from "../ports/stuck-hook.ts";
import { type ComposedNode, composeNode } from "./compose-node.ts";
import { ConfigurationError } from "./config/config.ts";
import type { ChainEntry, FencepostConfig } from "./config/define.ts";
import { configFrom, withOutsideSecrets } from "./config/load.ts";
import { openExtensions } from "./extensions.ts";

export type { CallerTransaction } from "../adapters/postgres/caller-transaction.ts";
export { type NonceUse, neverSent, type UsesNonce } from "../client/with-nonce.ts";

/** The settings that say where keys are, by the words that their names begin with. */
type SignerSetting = Extract<
  keyof FencepostConfig,
  `${"privateKey" | "mnemonic" | "keystore" | "nodeSigners" | "remoteSigner" | "awsKms" | "gcpKms" | "vault"}${string}`
>;

export interface FencepostOptions extends Omit<FencepostConfig, SignerSetting | "stuckHook"> {
  readonly databaseUrl: string;
  readonly chains: readonly ChainEntry[];
  /** Private keys, or where keys come from. */
  readonly signers: readonly string[] | Pick<FencepostConfig, SignerSetting>;
  /** Decides what becomes of stuck transactions: an object with `decide`, a module's path, or an https URL. */
  readonly stuckHook?: StuckResolutionHook | string;
  /** Every event the node reports, for one's own logs and metrics. */
  readonly onEvent?: TelemetrySink;
  /** Decides what is offered instead where an offer is not taken, on every chain; the rules for replacements and the ceiling hold all the same. */
  readonly repricing?: RepricingStrategy;
}

export interface SendOptions {
  /** The caller's own open transaction, of pg, Drizzle, Kysely, Knex, postgres.js or Prisma: the intent commits or rolls back with the caller's rows. */
  readonly client?: CallerTransaction;
}

/** What an operator says with an action; the rest is as in the HTTP API. */
export interface Order {
  /** Why; kept in the history. */
  readonly reason: string;
  readonly [field: string]: unknown;
}

export interface WaitOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface FollowOptions {
  /** The last sequence number that was dealt with; 0 begins at the beginning. */
  readonly after?: number;
  readonly epoch?: number;
  readonly signal?: AbortSignal;
}

/** `epoch` is the one it was written in; keep `seq` and `feedEpoch`, and go on from both. */
export interface FollowedCompletion extends CompletionRecord {
  readonly feedEpoch: number;
}

export interface BlocksOptions {
  /** Needed where several chains are configured. */
  readonly chainId?: number;
  readonly depth?: number;
  /** First height; without it, the head at the time of asking. */
  readonly from?: number;
  readonly signal?: AbortSignal;
}

const LOOK_EVERY_MS = 100;
const POLL_MS = 20_000;
const DEFAULT_DEPTH = 20;

/** It listens nowhere: what a configuration that a service uses as well says of that is not looked at. */
const NOT_SERVED = { auth: "none", host: "127.0.0.1" };

/**
 * The same node that `fencepost start` runs, inside this process and without HTTP. It takes its creates to nodes that can
 * be reached, but cannot be reached itself: it advertises no URL, and owns a lane only where no node with a URL serves it.
 */
export async function createFencepost(options: FencepostOptions): Promise<Fencepost> {
  const { signers, onEvent, repricing, stuckHook, ...rest } = options;
  const settings = typeof stuckHook === "string" ? { ...rest, stuckHook } : rest;
  if (Array.isArray(signers) && signers.length === 0) {
    throw new ConfigurationError(["createFencepost: signers: at least one is required"]);
  }
  const keys = Array.isArray(signers) ? { privateKeys: signers as readonly string[] } : signers;
  const entropy = createEntropy(systemClock);
  const file = { name: "createFencepost", content: { ...settings, ...keys, ...NOT_SERVED } };
  const loaded = configFrom({ command: "start", variables: {}, flags: {}, file }, `embedded-${entropy.uuid()}`);
  const config = await withOutsideSecrets(loaded.config, readEnvironment().variables);
  const own = repricing === undefined ? {} : { repricing };
  const chains = config.chains.map((chain) => ({ ...chain, settings: { ...chain.settings, ...own } }));
  const extensions = await openExtensions({ config });
  const composed = await composeNode({
    config: { ...config, chains },
    url: "",
    extensions: typeof stuckHook === "object" ? { ...extensions, stuckHook } : extensions,
    sinks: onEvent === undefined ? [] : [onEvent],
    // The embedding program decides whether to wait for its database.
    patience: null,
  });
  await composed.node.settlingIn.whenOver();
  return new EmbeddedFencepost(composed, config.databaseSchema);
}

/** Who acts where there is no API key: the process that embeds the node. */
const ACTOR = "operator:embedded";

export type Fencepost = Pick<EmbeddedFencepost, keyof EmbeddedFencepost>;

class EmbeddedFencepost {
  private readonly composed: ComposedNode;
  private readonly schema: string;
  private readonly closing = new AbortController();
  /** Sends the stored bytes again, now. This and the four below answer with the transaction; CONFLICT says what was mined. */
  readonly resubmit = this.acting("resubmit");
  /** Signs the same payload for more: the market's price, or the fees given. */
  readonly reprice = this.acting("reprice");
  /** Uses the nonce up with nothing. The original may still be mined first: then it is CONFIRMED. */
  readonly cancel = this.acting("cancel");
  /** Puts another `payload` at the nonce. */
  readonly replace = this.acting("replace");
  /** Asks the hook now, or applies the `action` given. */
  readonly resolve = this.acting("resolve");
  /** Creates are accepted and wait; nothing is sent from this signer until it is resumed. */
  readonly suspend = this.actingOnLane("suspend");
  readonly resume = this.actingOnLane("resume");
  /** Lowers a cursor that a lying endpoint pushed too far, to `nonce` or as far as it goes. */
  readonly realign = this.actingOnLane("realign");

  constructor(composed: ComposedNode, schema: string) {
    this.composed = composed;
    this.schema = schema;
    // Every waiting call listens to this signal, and any number may wait: Node's warning of a leak would be wrong.
    setMaxListeners(0, this.closing.signal);
  }

  /**
   * Resolves once the intent is durable; with `client`, once it stands in the caller's transaction as CREATED. Where another
   * embedded node acts for the signer, that one takes it up and this one waits for it: past four seconds it is accepted all
   * the same, as CREATED and without a nonce.
   */
  async send(intent: CreateRequest, { client }: SendOptions = {}): Promise<Created> {
    if (client === undefined) return createdView(await this.composed.node.api.create(intent));
    const entropy = createEntropy(systemClock);
    const normalised = normalise({ codec, entropy, chainIds: this.chainIds() }, intent);
    await insertIntake(intakeClientOf(client), normalised, this.schema);
    this.composed.node.intakeWritten();
    const { txId, lane, requestId } = normalised;
    return createdView({ outcome: "created", txId, lane, requestId, nonce: null, state: "CREATED" });
  }

  async get(txId: string, include?: readonly Include[]): Promise<TransactionView> {
    const found = await this.composed.node.api.transaction(txId, include).catch((error: unknown) => {
      // A read that closing cut off failed because of that, not because of the database.
      this.closing.signal.throwIfAborted();
      throw error;
    });
    return transactionView(found);
  }

  /** Resolves when the transaction is CONFIRMED or FAILED_FINAL. */
  async waitFor(txId: string, { timeoutMs, signal }: WaitOptions = {}): Promise<TransactionView> {
    const untilMs = timeoutMs === undefined ? Number.POSITIVE_INFINITY : systemClock.monotonicMs() + timeoutMs;
    const stop = this.stopSignal(signal);
    for (;;) {
      stop.throwIfAborted();
      const found = await this.get(txId).catch((error: unknown) => {
        stop.throwIfAborted();
        throw error;
      });
      if (isSettled(found.state)) return found;
      if (systemClock.monotonicMs() >= untilMs) {
        const detail = `${txId} is ${found.state} after ${timeoutMs} ms; it goes on all the same`;
        throw new FencepostError("UNAVAILABLE", detail, { txId });
      }
      await systemClock.sleep(LOOK_EVERY_MS, stop);
    }
  }

  /**
   * The ordered feed, without end, in the epoch it began in: EPOCH_CHANGED tells the new one, and where to go on. Keep
   * `seq` and `feedEpoch` of what was dealt with.
   */
  async *completions(options: FollowOptions = {}): AsyncGenerator<FollowedCompletion, void, undefined> {
    const { after = 0, epoch, signal } = options;
    const stop = this.stopSignal(signal);
    let from: CompletionsQuery = { after, waitMs: POLL_MS, signal: stop, ...(epoch === undefined ? {} : { epoch }) };
    while (!stop.aborted) {
      const page = await this.composed.node.api.completions(from).catch((error: unknown) => {
        if (stop.aborted) return null;
        throw error;
      });
      if (page === null) return;
      for (const item of page.items) yield { ...item, lane: laneView(item.lane), feedEpoch: page.epoch };
      from = { ...from, epoch: page.epoch, after: page.next };
    }
  }

  /**
   * Reserves a nonce for the callback to sign with, and reports what it did: `{ rawTransaction }`, `{ txHash }` or
   * `neverSent()`. Where it throws, nothing is released. Null where nothing was sent. Answers as the SDK and HTTP do.
   */
  withNonce(lane: ReserveNonce, callback: UsesNonce): Promise<CreatedTransaction | null> {
    const { api } = this.composed.node;
    const calls: NonceCalls = {
      reserveNonce: async (asked) => (await api.reserveNonce(asked)).reservation,
      submitReserved: async (id, rawTransaction) =>
        httpView(await api.submitReserved(id, { rawTransaction }), checksum),
      markUsed: async (id, txHash) => httpView(await api.markUsed(id, { txHash }), checksum),
      releaseNonce: (id) => api.releaseNonce(id),
    };
    return withNonce(calls, lane, callback);
  }

  /** Blocks past a depth (20 where none is given): ascending, each height once, without end. */
  blocks({ chainId, depth = DEFAULT_DEPTH, from, signal }: BlocksOptions = {}): AsyncGenerator<Block, void, undefined> {
    const options = { depth, signal: this.stopSignal(signal), ...(from === undefined ? {} : { from }) };
    return this.composed.node.blocks(parseChainId(this.chainIds(), chainId), options);
  }

  async close(): Promise<void> {
    this.closing.abort(new Error("Fencepost was closed"));
    await this.composed.close();
  }

  private acting(action: TransactionAction) {
    return async (txId: string, request: Order): Promise<TransactionView> =>
      transactionView(await this.composed.node.api.act({ action, txId, request, actor: ACTOR }));
  }

  private actingOnLane(action: LaneAction) {
    return async (signer: string, request: Order): Promise<readonly SignerView[]> =>
      signerViews(await this.composed.node.api.actOnLane({ action, signer, request, actor: ACTOR }));
  }

  private chainIds(): readonly number[] {
    return this.composed.chains.map(({ chainId }) => chainId);
  }

  private stopSignal(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined ? this.closing.signal : AbortSignal.any([this.closing.signal, signal]);
  }
}

/** Inside, addresses are lower-case; the embedding program gets EIP-55 checksums, as over HTTP. */
const codec = createCodec();

function createdView(created: Created): Created {
  return { ...created, lane: laneView(created.lane) };
}

function transactionView(view: TransactionView): TransactionView {
  const { lane, payload, receipt } = view;
  return { ...view, lane: laneView(lane), payload: payloadView(payload), receipt: receiptView(receipt) };
}

function signerViews(views: readonly SignerView[]): readonly SignerView[] {
  return views.map((view) => ({ ...view, lane: laneView(view.lane), address: checksum(view.address) }));
}

function laneView({ chainId, signer }: Lane): Lane {
  return { chainId, signer: checksum(signer) };
}

function payloadView({ to, accessList, ...payload }: Payload): Payload {
  const entries = accessList?.map((entry) => ({ ...entry, address: checksum(entry.address) }));
  return { ...payload, to: to && checksum(to), ...defined({ accessList: entries }) };
}

function receiptView(receipt: Receipt | null): Receipt | null {
  if (receipt === null || receipt.contractAddress === null) return receipt;
  return { ...receipt, contractAddress: checksum(receipt.contractAddress) };
}

function checksum(address: Address): Address {
  return codec.checksum(address) as Address;
}
