import { describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import type { TransactionAction } from "../../../src/application/api.ts";
import { parseAction, parseLaneAction } from "../../../src/application/requests/action.ts";
import { normalise, parseReserve } from "../../../src/application/requests/normalise.ts";

import { FencepostError } from "../../../src/domain/errors.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";

const TO = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const codec = createCodec();
const ports = { codec, entropy: createSeededEntropy(1, createManualClock()), chainIds: [1] };

function refused(work: () => unknown) {
  try {
    work();
  } catch (error) {
    if (error instanceof FencepostError) return { code: error.code, ...error.extras };
    throw error;
  }
  throw new Error("it was accepted");
}

const create = (body: object) => refused(() => normalise(ports, { signer: TO, payload: { to: TO }, ...body }));
const actionRequest = (action: TransactionAction, request: object) =>
  refused(() => parseAction(codec, { action, txId: "", request: { reason: "r", ...request }, actor: "operator" }, ""));

describe("a misspelt field of a request", () => {
  it.each([
    [{ from: TO }, "from", "signer"],
    [{ idempotencyKey: "1" }, "idempotencyKey", "requestId"],
    [{ value: "1" }, "value", "payload.value"],
    [{ gasLimit: 21_000 }, "gasLimit", "payload.gas"],
    [{ payload: { to: TO, gasLimit: 21_000 } }, "payload.gasLimit", "gas"],
    [{ payload: { to: TO, input: "0x" } }, "payload.input", "data"],
    [{ payload: { to: TO, calldata: "0x" } }, "payload.calldata", "data"],
    [{ payload: { to: TO, amount: "1" } }, "payload.amount", "value"],
    [{ payload: { to: TO, vlaue: "1" } }, "payload.vlaue", "value"],
    [{ payload: { to: TO, signer: TO } }, "payload.signer", "signer` beside `payload"],
    [{ payload: { to: TO, nonce: 7 } }, "payload.nonce", "nonce` beside `payload"],
    [{ payload: { to: TO, functionName: "f()", args: [] } }, "payload.functionName", "function"],
  ])("is refused in a create with a hint at the correct name: %j", (body, path, meant) => {
    expect(create(body)).toEqual({ code: "INVALID_REQUEST", path, hint: `did you mean \`${meant}\`?` });
  });

  it("is refused with a hint in actions and reservations", () => {
    expect(actionRequest("cancel", { maxfee: "1" })).toMatchObject({
      path: "maxfee",
      hint: "did you mean `maxFeePerGas`?",
    });
    expect(actionRequest("replace", { tx: {} })).toMatchObject({ path: "tx", hint: "did you mean `payload`?" });
    const lane = { action: "realign", signer: TO, request: { reason: "r", none: 1 }, actor: "operator" } as const;
    expect(refused(() => parseLaneAction(lane))).toMatchObject({ path: "none", hint: "did you mean `nonce`?" });
    expect(refused(() => parseReserve(ports, { from: TO } as object, null))).toMatchObject({
      path: "from",
      hint: "did you mean `signer`?",
    });
  });

  it("is refused without a hint if no known field is similar", () => {
    expect(create({ colour: "red" })).toEqual({ code: "INVALID_REQUEST", path: "colour" });
  });
});

describe("a tip above its fee cap", () => {
  it("is refused with both amounts in the message", () => {
    const payload = { to: TO, maxFeePerGas: 1, maxPriorityFeePerGas: 2 };
    expect(() => normalise(ports, { signer: TO, payload })).toThrow(
      "payload.maxPriorityFeePerGas: must not exceed maxFeePerGas: a tip of 2 wei does not fit under a cap of 1",
    );
  });
});
