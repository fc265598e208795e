import { afterAll, afterEach, beforeAll, describe } from "vitest";
import { enforced } from "../support/policies.ts";
import { actionKeysContract } from "./lane-store/action-keys.ts";
import { allocationContract } from "./lane-store/allocation.ts";
import { approvalContract } from "./lane-store/approval.ts";
import { batchContract } from "./lane-store/batch.ts";
import { chainContract } from "./lane-store/chain.ts";
import { externalContract } from "./lane-store/external.ts";
import { intakeContract } from "./lane-store/intake.ts";
import { leftIntentsContract } from "./lane-store/left-intents.ts";
import { leftRequestsContract } from "./lane-store/left-requests.ts";
import { loadingContract } from "./lane-store/loading.ts";
import { messagesContract } from "./lane-store/messages.ts";
import { nonceContract } from "./lane-store/nonces.ts";
import { noticesContract } from "./lane-store/notices.ts";
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

/**
 * The contract of every LaneStore: writes are fenced and atomic, each item of a write has one result, and a refused
 * item uses no nonce.
 */
export function laneStoreContract(name: string, create: () => Promise<StoreSubject>): void {
  describe(`LaneStore contract: ${name}`, () => {
    const context = {} as LaneStoreContext;
    beforeAll(async () => {
      context.subject = await create();
      context.store = await context.subject.connect();
    });
    // All tests share one database, so remove the limits before the next test.
    afterEach(async () => {
      await enforced(context.store);
    });
    afterAll(async () => {
      await context.store.close();
      await context.subject.close();
    });
    describe("nonce allocation", () => allocationContract(context));
    describe("state transitions", () => transitionContract(context));
    describe("changes of queued transactions", () => queuedChangesContract(context));
    describe("confirmation blocks and reorg watches", () => chainContract(context));
    describe("the intake table", () => intakeContract(context));
    describe("intents enqueued for the owner", () => leftIntentsContract(context));
    describe("requests enqueued for the owner", () => leftRequestsContract(context));
    describe("loading a lane", () => loadingContract(context));
    describe("reserved nonces and nonce holes", () => nonceContract(context));
    describe("use of a signer's key by other programs", () => externalContract(context));
    describe("notices to operators", () => noticesContract(context));
    describe("signer pools", () => poolsContract(context));
    describe("policies and their usage", () => policiesContract(context));
    describe("the policy document", () => policyDocumentContract(context));
    describe("approval of transactions", () => approvalContract(context));
    describe("messages under policy", () => messagesContract(context));
    describe("idempotency keys of actions", () => actionKeysContract(context));
    describe("validUntil and holds", () => timeAndHoldsContract(context));
    describe("commits of several writes", () => batchContract(context));
  });
}
