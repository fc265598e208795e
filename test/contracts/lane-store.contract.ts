import { afterAll, afterEach, beforeAll, describe } from "vitest";
import { enforced } from "../support/policies.ts";
import { allocationContract } from "./lane-store/allocation.ts";
import { approvalContract } from "./lane-store/approval.ts";
import { batchContract } from "./lane-store/batch.ts";
import { chainContract } from "./lane-store/chain.ts";
import { externalContract } from "./lane-store/external.ts";
import { intakeContract } from "./lane-store/intake.ts";
import { leftIntentsContract } from "./lane-store/left-intents.ts";
import { leftRequestsContract } from "./lane-store/left-requests.ts";
import { loadingContract } from "./lane-store/loading.ts";
import { nonceContract } from "./lane-store/nonces.ts";
import { noticesContract } from "./lane-store/notices.ts";
import { orderKeysContract } from "./lane-store/order-keys.ts";
import { policiesContract } from "./lane-store/policies.ts";
import { policyDocumentContract } from "./lane-store/policy-document.ts";
import { poolsContract } from "./lane-store/pools.ts";
import { queuedChangesContract } from "./lane-store/queued-changes.ts";
import { timeAndHoldsContract } from "./lane-store/time-and-holds.ts";
import { transitionContract } from "./lane-store/transition.ts";
import type { Store, StoreSubject } from "./store-subject.ts";

/** State shared by the parts of the suite; filled before the first test. */
export interface LaneStoreContext {
  subject: StoreSubject;
  store: Store;
}

/** The promises of every LaneStore: fenced, atomic, one result per item, and a refusal consumes nothing. */
export function laneStoreContract(name: string, create: () => Promise<StoreSubject>): void {
  describe(`LaneStore contract: ${name}`, () => {
    const context = {} as LaneStoreContext;
    beforeAll(async () => {
      context.subject = await create();
      context.store = await context.subject.connect();
    });
    // All share one database: the next test begins without limits.
    afterEach(async () => {
      await enforced(context.store);
    });
    afterAll(async () => {
      await context.store.close();
      await context.subject.close();
    });
    describe("allocating", () => allocationContract(context));
    describe("moving", () => transitionContract(context));
    describe("changing what is queued", () => queuedChangesContract(context));
    describe("following the chain", () => chainContract(context));
    describe("intake", () => intakeContract(context));
    describe("intents left for the owner", () => leftIntentsContract(context));
    describe("requests left for the owner", () => leftRequestsContract(context));
    describe("loading", () => loadingContract(context));
    describe("reserved nonces and holes", () => nonceContract(context));
    describe("use of the key by others", () => externalContract(context));
    describe("notices", () => noticesContract(context));
    describe("pools", () => poolsContract(context));
    describe("policies", () => policiesContract(context));
    describe("the policy document", () => policyDocumentContract(context));
    describe("approval", () => approvalContract(context));
    describe("keys of orders", () => orderKeysContract(context));
    describe("times and holds", () => timeAndHoldsContract(context));
    describe("batches", () => batchContract(context));
  });
}
