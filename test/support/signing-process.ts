/**
 * Runs both ends of the connection to a signing process in this process, so that a test can break the connection
 * between any two messages.
 */
import { type Duplex, duplexPair } from "node:stream";
import { serveSigner } from "../../src/adapters/evm/signers/process/serve-signer.ts";
import {
  type Launched,
  openSigningProcess,
  type SigningProcessOptions,
} from "../../src/adapters/evm/signers/process/signing-process.ts";
import type { Beginning } from "../../src/adapters/evm/signers/process/wire.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import type { SigningBounds } from "../../src/domain/keys/signing.ts";
import type { Hex } from "../../src/domain/lane.ts";
import { RULES } from "./messages.ts";
import { policiesOf } from "./policies.ts";

/** Limits for a signing process that allow every transaction on these chains, and the messages of the tests. */
export function wideBounds(chainIds: readonly number[]): SigningBounds {
  const most = 2n ** 400n;
  const ceilings = { feePerGas: most, isFeeSet: true, gasCost: most, cost: null };
  return {
    ceilings: new Map(chainIds.map((id) => [id, ceilings])),
    policies: policiesOf({ signers: { "*": { messages: RULES } } }).signers,
  };
}

export function beginningOf(privateKeys: readonly Hex[], bounds: SigningBounds): Beginning {
  return { sources: { privateKeys }, environment: {}, bounds };
}

export interface FakeProcess extends Launched {
  /** Ends the connection as SIGKILL would: nothing in flight arrives any more. */
  kill(): void;
}

/** Starts a fake signing process. `onMessage` is called for each chunk in either direction before it arrives. */
export function launchHere(onMessage: (process: FakeProcess) => void = () => undefined): FakeProcess {
  const [near, far] = duplexPair();
  let end: (how: string) => void = () => undefined;
  const ended = new Promise<string>((resolve) => {
    end = resolve;
  });
  const process: FakeProcess = {
    channel: near,
    ended,
    kill() {
      near.destroy();
      far.destroy();
      end("SIGKILL");
    },
    hold: () => undefined,
  };
  tap(near, () => onMessage(process));
  tap(far, () => onMessage(process));
  void serveSigner(far, { clock: systemClock, maskOf: async () => (text) => text }).then(() => end("exit code 0"));
  return process;
}

function tap(channel: Duplex, notify: () => void): void {
  const write = channel.write.bind(channel) as (chunk: unknown) => boolean;
  channel.write = (chunk: unknown) => {
    notify();
    return channel.destroyed ? false : write(chunk);
  };
}

export function openHere(options: Partial<SigningProcessOptions> & Pick<SigningProcessOptions, "beginning">) {
  return openSigningProcess({
    launch: () => launchHere(),
    clock: systemClock,
    entropy: { random: () => 0 },
    ...options,
  });
}
