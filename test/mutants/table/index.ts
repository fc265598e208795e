import type { Mutant } from "../mutant.ts";
import { AUTHORITY } from "./authority.ts";
import { CHAIN } from "./chain.ts";
import { CLUSTER } from "./cluster.ts";
import { FEES } from "./fees.ts";
import { LEDGER } from "./ledger.ts";
import { LEDGER_STATE } from "./ledger-state.ts";
import { MESSAGES } from "./messages.ts";
import { NONCES } from "./nonces.ts";
import { PACE } from "./pace.ts";
import { POLICY } from "./policy.ts";
import { STAGES } from "./stages.ts";
import { WEBHOOKS } from "./webhooks.ts";
import { WRITER } from "./writer.ts";

/** All rows, by area. */
export const TABLE: readonly Mutant[] = [
  ...AUTHORITY,
  ...CHAIN,
  ...CLUSTER,
  ...FEES,
  ...LEDGER,
  ...LEDGER_STATE,
  ...MESSAGES,
  ...NONCES,
  ...PACE,
  ...POLICY,
  ...STAGES,
  ...WEBHOOKS,
  ...WRITER,
];
