import { setMaxListeners } from "node:events";
import { createCodec } from "../adapters/evm/codec/codec.ts";
import type { SigningAccount } from "../adapters/evm/signers/remote/viem-account.ts";
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
import type { Hex } from "../client/hex.ts";
import { defined } from "../domain/defined.ts";
import { invalid } from "../domain/errors.ts";
import type { RepricingStrategy } from "../domain/fees/repricing.ts";
import { rememberingChecksum } from "../domain/text/checksum.ts";
import { createMask, type Mask, maskOfShapes } from "../domain/text/mask.ts";
import type { Intent } from "../domain/transaction/transaction.ts";
import type { Block } from "../ports/chain.ts";
import type { StuckResolutionHook } from "../ports/stuck-hook.ts";
import type { ChainEntry, FencepostConfig } from "./config/define.ts";
import { configFrom, withOutsideSecrets } from "./config/load.ts";
import { createFace } from "./library/embedded-face.ts";
import { asFaceError, asStartError, brokenTransaction, OPTIONS } from "./library/library-errors.ts";
import { ClosedError } from "./library/own-errors.ts";
import { parseSigners } from "./library/signers-option.ts";
import { type ComposedNode, composeNode } from "./node/compose-node.ts";
import { openExtensions } from "./node/extensions.ts";

export type { CallerTransaction } from "../adapters/postgres/caller-transaction.ts";

const NONCE_IN_TRANSACTION =
  "cannot be named for a send inside your own transaction: its nonce is given after your COMMIT";

/**
 * Options of `createFencepost`: every setting of docs/configuration.md under its name there (those of the HTTP server and
 * `logLevel` are ignored), and those that only a program can pass.
 */
export interface FencepostOptions extends Omit<FencepostConfig, "stuckHook"> {
  /** PostgreSQL of this process and of every other node: `postgres://user:password@host:5432/database`. */
  readonly databaseUrl: string;
  /** Chains that transactions are sent to, with their endpoints. */
  readonly chains: readonly ChainEntry[];
  /**
   * Accounts of viem that sign (a KMS, an HSM or a wallet with an adapter for viem), or private keys as `0x` and 64 hex
   * digits. Other sources of signers are settings: `awsKmsKeyIds`, `gcpKmsKeyVersions`, `vaultKeyPaths`,
   * `remoteSignerUrl`, `keystoreDir`, `mnemonic`, `privateKeyFiles`. At least one signer is required, from any source.
   */
  readonly signers?: readonly (SigningAccount | Hex)[];
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
  /** Minimum number of blocks on top of a block before it is yielded; default 20. */
  readonly depth?: number;
  /** First block height; if absent, the chain's newest block at the time of the call. */
  readonly from?: number;
  /** Ends the iteration when it is aborted. */
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
  let mask = maskOfShapes;
  try {
    const config = await configOf(options);
    mask = createMask(config.secrets);
    const { onEvent, repricing, stuckHook } = options;
    const extensions = { ...(await openExtensions({ config, checksum })), ...defined({ repricing }) };
    const composed = await composeNode({
      config,
      url: "",
      extensions: typeof stuckHook === "object" ? { ...extensions, stuckHook } : extensions,
      sinks: onEvent === undefined ? [] : [onEvent],
      // Do not wait for an unreachable database: the embedding program decides whether to retry.
    });
    await composed.node.settlingIn.whenOver();
    return embedded(composed, config.databaseSchema, mask);
  } catch (error) {
    throw asStartError(error, mask);
  }
}

async function configOf(options: FencepostOptions) {
  const { signers = [], onEvent, repricing, stuckHook, ...rest } = Object(options) as FencepostOptions;
  const { keys, accounts } = parseSigners(signers, rest);
  const settings = {
    ...rest,
    ...(typeof stuckHook === "string" && { stuckHook }),
    ...(keys.length > 0 && { privateKeys: [...[rest.privateKeys ?? []].flat(), ...keys] }),
  };
  const file = { name: OPTIONS, content: { ...settings, ...NOT_SERVED } };
  const sources = { command: "start", variables: {}, flags: {}, file, hasOtherSigners: accounts.length > 0 } as const;
  const { config } = configFrom(sources, `embedded-${createEntropy(systemClock).uuid()}`);
  return withOutsideSecrets({ ...config, signers: { ...config.signers, accounts } }, readEnvironment().variables);
}

/** A node in this process: the methods of the SDK, and methods that only an embedded node has. */
export interface Fencepost extends FencepostFace<SendOptions> {
  /**
   * Blocks that are at least `depth` blocks below the newest one (20 by default): ascending, each height once, without
   * end.
   */
  blocks(options?: BlocksOptions): AsyncGenerator<Block, void, undefined>;
  /**
   * Answers calls in progress, hands the lanes over to other nodes and closes every connection. Later calls reject with
   * a ClosedError.
   */
  close(): Promise<void>;
}

/** Addresses are lower-case inside the node; the embedding program gets EIP-55 checksums, as over HTTP. */
const codec = createCodec();
const checksum = rememberingChecksum(codec.checksum);

function embedded(composed: ComposedNode, databaseSchema: string, mask: Mask): Fencepost {
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
      const own = intakeClientOf(client);
      await insertIntake(own, known, databaseSchema).catch((error: unknown) => {
        throw brokenTransaction(error);
      });
      return known;
    };
    const inserted = await traced(tracing?.tracer, [{ request: intent }], (asked) => Promise.all(asked.map(insert)));
    node.intakeWritten();
    const { txId, lane, requestId } = inserted[0] as Intent;
    return { outcome: "created", txId, lane, requestId, nonce: null, state: "CREATED" };
  };
  return {
    ...createFace({ api: node.api, checksum, mask, clock: systemClock, closing: closing.signal, take }),
    async *blocks({ chainId, depth = DEFAULT_DEPTH, from, signal = closing.signal } = {}) {
      closing.signal.throwIfAborted();
      const options = { depth, signal: AbortSignal.any([closing.signal, signal]), ...defined({ from }) };
      try {
        yield* node.blocks(parseChainId(chainIds, chainId), options);
      } catch (error) {
        signal.throwIfAborted();
        throw asFaceError(error, mask);
      }
    },
    async close() {
      closing.abort(new ClosedError());
      await composed.close();
    },
  };
}
