import { callReader } from "../../adapters/http/exchange/declared-call.ts";
import { present } from "../../adapters/http/exchange/present-answer.ts";
import type { CallOptions } from "../../client/deadline.ts";
import { asParameters, type Call as Request, type Transport } from "../../client/transport.ts";
import { type Call, methodOf } from "../../contract/calls/call.ts";
import { GROUPS } from "../../contract/calls/index.ts";
import { ACTOR, type Asking, type Inside } from "./asking.ts";
import { shaped } from "./contract-shape.ts";

const calls = GROUPS.flatMap(([, each]) => Object.values<Call>(each)).filter(methodOf);

/** By method and path as the client names them. */
const CALLS = new Map(
  calls.map((call) => {
    const names = [...call.at.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
    const [{ schema = {} } = {}] = Object.values(call.answers);
    return [call.at.replace("/api/v1", ""), { names, schema, read: callReader(call) }] as const;
  }),
);

/** Requests of the client's calls to the node in this process: read, performed and presented as over HTTP. */
export function inProcess({ api, checksum, clock }: Inside, asking: Asking): Transport {
  const answerTo = async (request: Request, options: CallOptions): Promise<unknown> => {
    const { names, schema, read } = knownCall(request.at);
    const { params = [], query = {}, body, idempotencyKey } = request;
    const asked = read({
      params: Object.fromEntries(names.map((name, at) => [name, String(params[at])])),
      query: asParameters(query),
      body,
      actor: ACTOR,
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    });
    const { signal } = asking.untilClosed(options);
    const result = await (asked.waitMs === 0 ? asked.perform(api) : asked.perform(api, signal));
    return shaped(schema, present(schema, result, { checksum, now: clock.now() }));
  };
  return async <T>(request: Request): Promise<T> => {
    const { signal, timeoutMs } = request;
    const options = { ...(signal && { signal }), ...(timeoutMs !== undefined && { timeoutMs }) };
    const limits = Object.keys(options).length === 0 ? undefined : options;
    const ask = () => answerTo(request, options);
    return (await (request.at.startsWith("get ") ? asking.read(limits, ask) : asking.ask(limits, ask))) as T;
  };
}

function knownCall(at: string) {
  const call = CALLS.get(at);
  if (call === undefined) throw new Error(`no call is declared at ${at}`);
  return call;
}
