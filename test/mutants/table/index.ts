import type { Mutant } from "../mutant.ts";
import { ALLOCATE_AND_SIGN } from "./allocate-and-sign.ts";
import { AUTHORITY } from "./authority.ts";
import { BROADCAST } from "./broadcast.ts";
import { CHAIN } from "./chain.ts";
import { CLUSTER } from "./cluster.ts";
import { CREATE } from "./create.ts";
import { DETOURS } from "./detours.ts";
import { FEES } from "./fees.ts";
import { JSON_RPC } from "./json-rpc.ts";
import { LANE } from "./lane.ts";
import { LEDGER } from "./ledger.ts";
import { LEDGER_STATE } from "./ledger-state.ts";
import { MESSAGES } from "./messages.ts";
import { NONCES } from "./nonces.ts";
import { OPERATIONS } from "./operations.ts";
import { PACE } from "./pace.ts";
import { POLICY } from "./policy.ts";
import { RECEIPT_AND_FINALITY } from "./receipt-and-finality.ts";
import { STAGES } from "./stages.ts";
import { WEBHOOKS } from "./webhooks.ts";
import { WRITER } from "./writer.ts";

/** All rows, by area. */
export const TABLE: readonly Mutant[] = [
  ...ALLOCATE_AND_SIGN,
  ...AUTHORITY,
  ...BROADCAST,
  ...CHAIN,
  ...CLUSTER,
  ...CREATE,
  ...DETOURS,
  ...FEES,
  ...JSON_RPC,
  ...LANE,
  ...LEDGER_STATE,
  ...LEDGER,
  ...MESSAGES,
  ...NONCES,
  ...OPERATIONS,
  ...PACE,
  ...POLICY,
  ...RECEIPT_AND_FINALITY,
  ...STAGES,
  ...WEBHOOKS,
  ...WRITER,
];
