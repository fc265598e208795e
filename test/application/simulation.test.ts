import { expect, it } from "vitest";
import { playSeeds } from "../support/simulation/play.ts";

/** Runs a few seeds, or replays one. test/simulation runs a thousand. */
const FIRST = Number(process.env.FENCEPOST_SIM_FIRST ?? 1);
const COUNT = Number(process.env.FENCEPOST_SIM_SEEDS ?? 4);

it(
  // protects [Sent again, priced again, stuck] src/domain/fees/ceilings.ts, src/ports/signer.ts
  // protects [Signers] src/application/stages/3-sign/sign.ts, src/application/lane/term.ts
  // protects [Pools] src/domain/ledger/allocate.ts, src/adapters/postgres/statements/pool-choice.ts
  // protects [Reads] src/domain/ledger/kept.ts, src/application/writer/committer.ts
  `simulation: in ${COUNT} random scenarios, every transaction settles and every invariant holds`,
  async () => {
    expect((await playSeeds({ first: FIRST, count: COUNT })).failures).toEqual([]);
  },
  COUNT * 5_000,
);
