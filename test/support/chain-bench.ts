import { ChainContext } from "../../src/application/chain/chain-context.ts";
import { OwnedLane } from "../../src/application/lane/owned-lane.ts";
import { Term, type TermPorts } from "../../src/application/lane/term.ts";
import type { ChainSettings } from "../../src/application/settings.ts";
import type { LaneSnapshot } from "../../src/ports/lane-store.ts";
import { createManualClock, type ManualClock } from "../doubles/manual-clock.ts";
import { DirectChain } from "../doubles/simulated-chain/chain-port.ts";
import { SimulatedChain } from "../doubles/simulated-chain/core.ts";
import { Faults } from "../doubles/simulated-chain/faults.ts";
import type { SimulatedChainOptions } from "../doubles/simulated-chain/options.ts";
import { senderFromFakeSignature } from "../doubles/simulated-chain/sender.ts";
import { type RecordedTelemetry, recordTelemetry } from "./recorded-telemetry.ts";
import { CHAIN_ID, CHAIN_SETTINGS, SIGNER } from "./world.ts";

/**
 * One chain, and the state that a node keeps about it, but without the node: for tests of code that only reads the
 * chain.
 */
export interface ChainBench {
  readonly clock: ManualClock;
  readonly telemetry: RecordedTelemetry;
  readonly simulated: SimulatedChain;
  readonly faults: Faults;
  /** Controls the faults of the second endpoint, if there is one. */
  readonly elsewhere: Faults;
  readonly chain: DirectChain;
  readonly context: ChainContext;
}

export interface ChainBenchOptions {
  readonly settings?: Partial<ChainSettings>;
  readonly chain?: Partial<SimulatedChainOptions>;
  readonly endpoints?: 1 | 2;
}

export function createChainBench(options: ChainBenchOptions = {}): ChainBench {
  const clock = createManualClock();
  const telemetry = recordTelemetry();
  const simulated = new SimulatedChain({
    chainId: CHAIN_ID,
    recoverSender: senderFromFakeSignature,
    ...options.chain,
  });
  const faults = new Faults();
  const elsewhere = new Faults();
  const second = options.endpoints === 2 ? { elsewhere: { chain: simulated, faults: elsewhere } } : {};
  const chain = new DirectChain(simulated, { faults, ...second });
  const context = new ChainContext(chain, { ...CHAIN_SETTINGS, ...options.settings }, { clock, telemetry });
  return { clock, telemetry, simulated, faults, elsewhere, chain, context };
}

/** A lane ownership (term) that never ends by itself and rejects every write. */
export const ENDLESS: TermPorts = {
  writer: { write: () => Promise.reject(new Error("nothing is written here")) },
  lease: { mayAct: () => true, maySend: () => true },
  kills: { holds: () => false },
  telemetry: { emit: () => undefined },
  reload: () => undefined,
};

export function createOwnedLane(
  snapshot: Partial<LaneSnapshot> = {},
  context?: ChainContext,
  ports: TermPorts = ENDLESS,
): OwnedLane {
  const fence = { lane: { chainId: CHAIN_ID, signer: SIGNER }, instanceId: "instance", token: 1 };
  const nothing = { tracking: [], allocated: 0, watched: [], holes: [], reservations: [] };
  const empty = { cursor: null, suspendedBy: null, reconciled: true, epochFloor: 0, genesisHash: null, ...nothing };
  const lane = new OwnedLane(
    new Term(fence, ports),
    { ...empty, ...snapshot },
    context ?? { hashes: new Map(), onChain: new Set() },
  );
  lane.pace = { ...lane.pace, lookOwed: false };
  return lane;
}
