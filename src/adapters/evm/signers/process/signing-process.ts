/**
 * The node's side of its signing process. If that process ends, its pending requests fail with `SignerAway`, and
 * another process is started: at once, then with growing pauses. Signatures that were made and not returned have no
 * effect: only committed bytes are sent.
 */
import { type Duplex, PassThrough } from "node:stream";
import type { Address, Hex } from "../../../../domain/lane.ts";
import type { MessageToSign } from "../../../../domain/messages/message.ts";
import { type BackoffRule, backoffMs } from "../../../../domain/pace/when.ts";
import type { Policy } from "../../../../domain/policy/policy.ts";
import { messageOf } from "../../../../domain/text/thrown.ts";
import type { Clock } from "../../../../ports/clock.ts";
import type { Entropy } from "../../../../ports/entropy.ts";
import { type SignedTransaction, SignerAway } from "../../../../ports/signer.ts";
import { pendingRequests } from "../../threads/pending.ts";
import type { LocalSigner } from "../local-signer.ts";
import type { Warn } from "../private-keys.ts";
import { provenSignature } from "../recovery.ts";
import {
  type Beginning,
  decodeFailure,
  decodeSignatures,
  decodeSigned,
  encodeBeginning,
  encodeMessages,
  encodePolicies,
  encodeRequest,
  type Hello,
  Lines,
  type SignRequest,
} from "./wire.ts";

/** A started signing process, or a test's replacement for one. */
export interface Launched {
  readonly channel: Duplex;
  /** Resolves with a text that describes how the process ended. */
  readonly ended: Promise<string>;
  kill(): void;
  /** Sets whether the child process keeps this process from exiting. */
  hold(held: boolean): void;
}

/** Placeholder for a signing process that could not be started; it behaves like a process that has ended. */
export function neverStarted(ended: Promise<string>): Launched {
  return { channel: new PassThrough().destroy(), ended, kill: () => undefined, hold: () => undefined };
}

export interface SigningProcessOptions {
  /**
   * Starts the signing process. A throw counts as the end of the process: at the first start it is reported to the
   * caller, later the start is retried.
   */
  readonly launch: () => Launched;
  /** Start message with the keys. The process starts while the message is being prepared. */
  readonly beginning: Promise<Beginning>;
  readonly clock: Clock;
  readonly entropy: Pick<Entropy, "random">;
  /** Receives the warnings of the first signing process only. */
  readonly warn?: Warn | undefined;
}

const START_AGAIN: BackoffRule = { firstMs: 100, mostMs: 10_000 };
/** If a signing process lived longer than this, its end counts as the first failure again. */
const LONG_ENOUGH_MS = 30_000;
/** A signing process with pending requests is pinged, and killed after this many ms without a response. */
const SILENT_MS = 10_000;
const CLOSE_MS = 1_000;

/**
 * Starts the signing process. Resolves when the process has its keys; throws the process's error if it cannot start.
 */
export async function openSigningProcess(options: SigningProcessOptions): Promise<LocalSigner> {
  const signing = new SigningProcess(options);
  try {
    const { addresses, atNode, curve } = await signing.start();
    const node = new Set(atNode);
    return {
      curve,
      addresses: () => addresses,
      custody: (address) => (node.has(address) ? "node" : "local"),
      sign: (address, transactions, term = 0) => signing.sign({ address, transactions, term }),
      signMessages: (address, messages) => signing.signMessages(address, messages),
      adoptPolicies: (signers) => signing.adopt(signers),
      close: () => signing.close(),
    };
  } catch (error) {
    await signing.close();
    throw error;
  }
}

class SigningProcess {
  private readonly options: SigningProcessOptions;
  private readonly pending = pendingRequests<string>();
  private readonly closing = new AbortController();
  private current: Launched | null = null;
  /** Reason why the process takes no requests now; null if it is ready. */
  private away: string | null = "is starting";
  /** Policies in force; also sent to a process that replaces this one. Null if not known yet. */
  private policies: string | null = null;
  private outgoing = "";
  private failures = 0;
  private hasWarned = false;

  constructor(options: SigningProcessOptions) {
    this.options = options;
  }

  async start(): Promise<Hello> {
    const { clock, beginning } = this.options;
    const launched = this.launch();
    const startedMs = clock.monotonicMs();
    this.current = launched;
    const hello = new Promise<Hello>((resolve, reject) => {
      this.listen(launched, { resolve, reject });
      void launched.ended.then((how) => {
        reject(new SignerAway(`the signing process ended (${how})`));
        this.lose(launched, how, clock.monotonicMs() - startedMs);
      });
    });
    hello.catch(() => undefined);
    launched.channel.write(`${encodeBeginning(await beginning)}\n`);
    const said = await hello;
    if (this.policies !== null) launched.channel.write(this.policies);
    this.hasWarned = true;
    this.away = null;
    launched.hold(false);
    return said;
  }

  private launch() {
    try {
      return this.options.launch();
    } catch (error) {
      return neverStarted(Promise.resolve(messageOf(error)));
    }
  }

  async sign(request: Omit<SignRequest, "id">): Promise<readonly SignedTransaction[]> {
    if (request.transactions.length === 0 && this.away === null) return [];
    return decodeSigned(await this.ask((id) => encodeRequest({ id, ...request })));
  }

  async signMessages(address: Address, messages: readonly MessageToSign[]): Promise<readonly Hex[]> {
    if (messages.length === 0) return [];
    const signed = decodeSignatures(await this.ask((id) => encodeMessages({ id, address, messages })));
    const label = "the signing process";
    return Promise.all(messages.map(({ digest }, at) => provenSignature(signed[at], { address, digest, label })));
  }

  /** Sends a request, and resolves with the text of its response. */
  private ask(encode: (id: number) => string): Promise<string> {
    if (this.away !== null) return Promise.reject(new SignerAway(`the signing process ${this.away}`));
    return this.pending.add((id) => {
      if (this.outgoing === "") queueMicrotask(() => this.flush());
      this.outgoing += `${encode(id)}\n`;
    });
  }

  /** Sends new policies to the process. They apply to every later request, because lines are read in order. */
  adopt(signers: ReadonlyMap<string, Policy>): void {
    this.policies = `${encodePolicies(signers)}\n`;
    if (this.away === null) this.current?.channel.write(this.policies);
  }

  async close(): Promise<void> {
    this.closing.abort();
    const { current } = this;
    this.abandon("was closed");
    if (current === null) return;
    current.channel.end();
    const cancel = this.options.clock.after(CLOSE_MS, () => current.kill());
    await current.ended;
    cancel();
  }

  /** Writes all requests of one tick at once. */
  private flush() {
    const lines = this.outgoing;
    this.outgoing = "";
    if (this.current === null || this.pending.size() === 0) return;
    this.current.hold(true);
    this.current.channel.write(lines);
  }

  private listen(launched: Launched, hello: { resolve(hello: Hello): void; reject(error: Error): void }) {
    const lines = new Lines();
    const { channel } = launched;
    const markAlive = this.watch(launched);
    const kinds: Readonly<Record<string, (text: string) => void>> = {
      "=": (text) => this.pending.take(Number.parseInt(text, 10))?.resolve(afterId(text)),
      "!": (text) => this.pending.take(Number.parseInt(text, 10))?.reject(decodeFailure(afterId(text))),
      h: (text) => hello.resolve(JSON.parse(text) as Hello),
      f: (text) => hello.reject(decodeFailure(text)),
      w: (text) => (this.hasWarned ? undefined : this.options.warn?.(text)),
    };
    channel.setEncoding("utf8");
    // Ignore errors of the channel: `ended` reports the end of the process.
    channel.on("error", () => undefined);
    channel.on("data", (chunk: string) => {
      markAlive();
      for (const line of lines.take(chunk)) kinds[line.charAt(0)]?.(line.slice(1));
      if (this.pending.size() === 0 && this.away === null) launched.hold(false);
    });
  }

  /**
   * Kills a process that is stopped or in an endless loop, detected by its silence. It is then replaced like one that
   * died.
   */
  private watch(launched: Launched) {
    let isAlive = true;
    const look = () => {
      if (this.current !== launched) return;
      if (!isAlive) launched.kill();
      isAlive = this.pending.size() === 0 && this.away === null;
      if (!isAlive && launched.channel.writable) launched.channel.write("?\n");
      cancel = this.options.clock.after(SILENT_MS, look);
    };
    let cancel = this.options.clock.after(SILENT_MS, look);
    void launched.ended.then(() => cancel());
    return () => {
      isAlive = true;
    };
  }

  private lose(launched: Launched, how: string, lastedMs: number) {
    if (this.current !== launched) return;
    this.failures = lastedMs > LONG_ENOUGH_MS ? 1 : this.failures + 1;
    this.abandon(`ended (${how}); another is started`);
    void this.startAgain();
  }

  private async startAgain() {
    const { clock, entropy } = this.options;
    const pauseMs = this.failures === 1 ? 0 : backoffMs(START_AGAIN, this.failures, entropy.random());
    try {
      await clock.sleep(pauseMs, this.closing.signal);
      await this.start();
    } catch (error) {
      if (this.closing.signal.aborted) return;
      this.away = `cannot be started: ${messageOf(error)}`;
      // Kill a process that cannot start; its end starts the next one.
      this.current?.kill();
    }
  }

  private abandon(why: string) {
    this.current = null;
    this.away = why;
    this.outgoing = "";
    this.pending.abandon(new SignerAway(`the signing process ${why}`));
  }
}

/** Removes the request's id from the start of a response. */
const afterId = (text: string) => text.slice(text.indexOf(" ") + 1);
