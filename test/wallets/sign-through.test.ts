import { describe, expect, it } from "vitest";
import { failureOf } from "../../src/client/error-classes.ts";
import type { FencepostSendError } from "../../src/wallets/send-error.ts";
import { signThrough } from "../../src/wallets/sign-through.ts";
import type { FencepostSource, MessageIntent } from "../../src/wallets/source.ts";

const INTENT: MessageIntent = {
  ...{ signer: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", requestId: "login-1" },
  message: { raw: "0x61" },
};
const signed = { signatureId: "s-1", signature: "0x5e" };
const away = failureOf({ code: "UNAVAILABLE", status: 503, detail: "the signer signs nothing now" });

/** A client that gives these answers, one per request; the last one is repeated. */
function scripted(...answers: readonly (Error | typeof signed | { signatureId: string; signature: null })[]) {
  const asked: MessageIntent[] = [];
  const sign: FencepostSource["sign"] = async (intent) => {
    const answer = answers[Math.min(asked.push(intent), answers.length) - 1];
    if (answer === undefined || answer instanceof Error) throw answer;
    return answer;
  };
  return { asked, source: { sign } as Partial<FencepostSource> as FencepostSource };
}

const failed = (work: Promise<unknown>) =>
  work.then(
    () => Promise.reject(new Error("it was signed")),
    (error: unknown) => error as FencepostSendError,
  );

describe("a message that a wallet library has signed", () => {
  // protects [Wallet libraries, and tests of callers] src/wallets/sign-through.ts
  it("is requested again under the same request id while the result is unknown", async () => {
    const { asked, source } = scripted(away, away, signed);
    expect(await signThrough(source, INTENT, 10_000)).toBe("0x5e");
    expect(asked).toEqual([INTENT, INTENT, INTENT]);
  });

  it("is requested once if it is refused", async () => {
    const forbidden = failureOf({ code: "FORBIDDEN", status: 403, detail: "no rule allows it" });
    const { asked, source } = scripted(forbidden);
    const error = await failed(signThrough(source, INTENT, 10_000));
    expect(error).toMatchObject({ failure: "FORBIDDEN", code: 4100, requestId: "login-1", cause: forbidden });
    expect(asked).toHaveLength(1);
  });

  it("names its request id if the time is over, or if it waits for approval", async () => {
    const late = await failed(signThrough(scripted(away).source, INTENT, 0));
    expect(late).toMatchObject({ failure: "UNAVAILABLE", requestId: "login-1" });
    const waiting = { signatureId: "s-1", signature: null };
    const error = await failed(signThrough(scripted(waiting).source, INTENT, 10_000));
    expect(error).toMatchObject({ failure: "TIMEOUT", requestId: "login-1" });
    expect(error.message).toMatch(/signature s-1 waits for approval: sign it again with the request id login-1/);
  });

  it("is refused by a client that signs none", async () => {
    const error = await failed(signThrough({} as Partial<FencepostSource> as FencepostSource, INTENT, 10_000));
    expect(error).toMatchObject({ code: 4200, message: expect.stringMatching(/signs no messages/) });
  });
});
