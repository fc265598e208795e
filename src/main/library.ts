import { setMaxListeners } from "node:events";
import { createCodec } from "../adapters/evm/codec/codec.ts";
import { type CallerTransaction, intakeClientOf } from "../adapters/postgres/caller-transaction.ts";
import { insertIntake } from "../adapters/postgres/insert-intake.ts";
import { systemClock } from "../adapters/system/clock.ts";
import { createEntropy } from "../adapters/system/entropy.ts";
import { readEnvironment } from "../adapters/system/environment.ts";
import type { TelemetrySink } from "../adapters/system/telemetry.ts";
import type { Created, CreateRequest } from "../application/api.ts";
import { normalise, parseChainId } from "../application/requests/normalise.ts";
import { traced } from "../application/stages/1-create/asked-create.ts";
import type { CallOptions } from "../client/deadline.ts";
import type { FencepostFace } from "../client/face.ts";
import { defined } from "../domain/defined.ts";
import { invalid } from "../domain/errors.ts";
import type { RepricingStrategy } from "../domain/fees/repricing.ts";
import { rememberingChecksum } from "../domain/text/checksum.ts";
import { createMask } from "../domain/text/mask.ts";
import type { Intent } from "../domain/transaction/transaction.ts";
import type { Block } from "../ports/chain.ts";
import type { StuckResolutionHook } from "../ports/stuck-hook.ts";
import { type ConfigFor, ConfigurationError } from "./config/config.ts";
import type { ChainEntry, FencepostConfig } from "./config/define.ts";
import { configFrom, withOutsideSecrets } from "./config/load.ts";
import { createFace } from "./library/embedded-face.ts";
import { type ComposedNode, composeNode } from "./node/compose-node.ts";
import { openExtensions } from "./node/extensions.ts";

export type { CallerTransaction } from "../adapters/postgres/caller-transaction.ts";

const NONCE_IN_TRANSACTION =
  "cannot be named for a send inside your own transaction: its nonce is given after your COMMIT";

/** Settings of key sources, selected by the prefixes of their names. */
type SignerSetting = Extract<
  keyof FencepostConfig,
  `${"privateKey" | "mnemonic" | "keystore" | "nodeSigners" | "remoteSigner" | "awsKms" | "gcpKms" | "vault"}${string}`
>;

export interface FencepostOptions extends Omit<FencepostConfig, SignerSetting | "stuckHook"> {
  readonly databaseUrl: string;
  readonly chains: readonly ChainEntry[];
  /** Private keys, or settings of key sources. */
  readonly signers: readonly string[] | Pick<FencepostConfig, SignerSetting>;
  /** Hook that decides about stuck transactions: an object with `decide`, a module's path, or an https URL. */
  readonly stuckHook?: StuckResolutionHook | string;
  /** Receives every event that the node reports, for the program's own logs and metrics. */
  readonly onEvent?: TelemetrySink;
  /**
   * Decides the next price if a transaction is not mined at the present one, on every chain. The rules for replacements
   * and the ceilings still apply.
   */
  readonly repricing?: RepricingStrategy;
}

export interface SendOptions extends CallOptions {
  /**
   * The caller's own open database transaction, of pg, Drizzle, Kysely, Knex, postgres.js, Prisma or TypeORM: the intent
   * commits or rolls back with the caller's rows.
   */
  readonly client?: CallerTransaction;
}

export interface BlocksOptions {
  /** Chain id; required if several chains are configured. */
  readonly chainId?: number;
  readonly depth?: number;
  /** First block height; if absent, the chain's newest block at the time of the call. */
  readonly from?: number;
  readonly signal?: AbortSignal;
}

const DEFAULT_DEPTH = 20;

/**
 * Fixed values for settings of the HTTP server. An embedded node has no server, but its configuration may be shared
 * with a service and contain these settings; the configured values are ignored.
 */
const NOT_SERVED = { auth: "none", host: "127.0.0.1" };

/** Implementation of the exported function of this name (create-fencepost.ts). */
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
  const extensions = { ...(await openExtensions({ config })), ...defined({ repricing }) };
  const composed = await composeNode({
    config,
    url: "",
    extensions: typeof stuckHook === "object" ? { ...extensions, stuckHook } : extensions,
    sinks: onEvent === undefined ? [] : [onEvent],
    // Do not wait for an unreachable database: the embedding program decides whether to retry.
  });
  await composed.node.settlingIn.whenOver();
  return embedded(composed, config);
}

/** A node in this process: the methods of the SDK, and methods that only an embedded node has. */
export interface Fencepost extends FencepostFace<SendOptions> {
  /**
   * Blocks that are at least `depth` blocks below the newest one (20 by default): ascending, each height once, without
   * end.
   */
  blocks(options?: BlocksOptions): AsyncGenerator<Block, void, undefined>;
  close(): Promise<void>;
}

/** Addresses are lower-case inside the node; the embedding program gets EIP-55 checksums, as over HTTP. */
const codec = createCodec();
const checksum = rememberingChecksum(codec.checksum);

type Embedded = Pick<ConfigFor<"start">, "databaseSchema" | "secrets">;

function embedded(composed: ComposedNode, { databaseSchema, secrets }: Embedded): Fencepost {
  const { node, tracing } = composed;
  const chainIds = composed.chains.map(({ chainId }) => chainId);
  const closing = new AbortController();
  // Every waiting call listens to this signal, and there may be any number of them. So Node's warning about a listener
  // leak would be wrong.
  setMaxListeners(0, closing.signal);
  /**
   * Resolves once the intent is durable; with `client`, once it is written in the caller's database transaction, as
   * CREATED. If another embedded node owns the signer's lane, that node processes the intent and this one waits for the
   * result. After four seconds the intent is accepted anyway, as CREATED and without a nonce.
   */
  const take = async (intent: CreateRequest, { client }: SendOptions): Promise<Created> => {
    if (client === undefined) return node.api.create(intent);
    const entropy = createEntropy(systemClock);
    const insert = async ({ request }: { readonly request: CreateRequest }) => {
      const known = normalise({ codec, entropy, clock: systemClock, chainIds }, request);
      if (known.exactNonce !== undefined) throw invalid("nonce", NONCE_IN_TRANSACTION);
      await insertIntake(intakeClientOf(client), known, databaseSchema);
      return known;
    };
    const inserted = await traced(tracing?.tracer, [{ request: intent }], (asked) => Promise.all(asked.map(insert)));
    node.intakeWritten();
    const { txId, lane, requestId } = inserted[0] as Intent;
    return { outcome: "created", txId, lane, requestId, nonce: null, state: "CREATED" };
  };
  const mask = createMask(secrets);
  return {
    ...createFace({ api: node.api, checksum, mask, clock: systemClock, closing: closing.signal, take }),
    blocks({ chainId, depth = DEFAULT_DEPTH, from, signal = closing.signal } = {}) {
      const options = { depth, signal: AbortSignal.any([closing.signal, signal]), ...defined({ from }) };
      return node.blocks(parseChainId(chainIds, chainId), options);
    },
    async close() {
      closing.abort(new Error("Fencepost was closed"));
      await composed.close();
    },
  };
}
