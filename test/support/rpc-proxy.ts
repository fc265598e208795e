/** A JSON-RPC proxy in front of a real chain that forwards calls and applies a test's rules to them. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface ProxiedCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

export interface RpcFault {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

export type ProxiedReply = { readonly result: unknown } | { readonly error: RpcFault };

/**
 * The effect of a rule on one call. `next` passes the call, changed or not, to the following rules and then to the
 * chain.
 */
export type Treatment = (
  call: ProxiedCall,
  next: (call?: ProxiedCall) => Promise<ProxiedReply>,
) => Promise<ProxiedReply>;

export interface RuleOptions {
  /** The methods concerned; all methods if absent. */
  readonly methods?: readonly string[];
  readonly when?: (call: ProxiedCall) => boolean;
  /** How often the rule applies; if absent, until the rule is removed. */
  readonly times?: number;
}

export interface Rule {
  /** How often the rule has been applied. */
  readonly struck: number;
  lift(): void;
}

export interface RpcProxy {
  readonly url: string;
  readonly calls: readonly ProxiedCall[];
  /** The methods of each HTTP request, in order. */
  readonly requests: readonly (readonly string[])[];
  /** Rules are applied in the order in which they were added. */
  rule(options: RuleOptions, treatment: Treatment): Rule;
  /** From now on forwards to another chain behind the same URL. */
  retarget(url: string): void;
  /** Closes the connections that carry no request at this moment. */
  hangUp(): void;
  close(): Promise<void>;
}

/** Thrown by a rule to break the connection without a response. */
class Cut extends Error {}

/** Thrown by a rule to send this as the whole HTTP response, even if the request contained other calls. */
class HttpAnswer extends Error {
  readonly status: number;
  readonly body: string;
  constructor(status: number, body: string) {
    super(body);
    this.status = status;
    this.body = body;
  }
}

/** The chain performs the call, but its response is lost and the connection breaks. */
export const swallow: Treatment = async (_call, next) => {
  await next();
  throw new Cut("the reply is lost");
};

/** The chain does not receive the call, and there is never a response. */
export const hang: Treatment = () => new Promise<never>(() => undefined);

/** The chain performs the call, but there is never a response. */
export const hangAfterwards: Treatment = async (_call, next) => {
  await next();
  return new Promise<never>(() => undefined);
};

export const badGateway: Treatment = async () => {
  throw new HttpAnswer(502, "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>");
};

/** Imitates gateways that wrap the node's error in an error of the gateway. */
export const wrapErrors: Treatment = async (_call, next) => {
  const reply = await next();
  if (!("error" in reply)) return reply;
  return { error: { code: -32_603, message: "Internal JSON-RPC error.", data: reply.error } };
};

export const refuseWith =
  (message: string, code = -32_000): Treatment =>
  async () => ({ error: { code, message } });

/** Answers in place of the chain, which does not receive the call. */
export const pretend =
  (answer: (call: ProxiedCall) => unknown): Treatment =>
  async (call) => ({ result: answer(call) });

export const rewrite =
  (change: (result: unknown, call: ProxiedCall) => unknown): Treatment =>
  async (call, next) => {
    const reply = await next();
    return "error" in reply ? reply : { result: change(reply.result, call) };
  };

export const holdUntil =
  (released: Promise<unknown>): Treatment =>
  async (_call, next) => {
    await released;
    return next();
  };

interface KeptRule extends RuleOptions {
  readonly treatment: Treatment;
  struck: number;
  lifted: boolean;
}

export async function startRpcProxy(target: string): Promise<RpcProxy> {
  const rules: KeptRule[] = [];
  const calls: ProxiedCall[] = [];
  const requests: string[][] = [];
  let chainUrl = target;

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      if (error instanceof HttpAnswer)
        response.writeHead(error.status, { "content-type": "text/html" }).end(error.body);
      else request.socket.destroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    requests,
    rule(options, treatment) {
      const kept: KeptRule = { ...options, treatment, struck: 0, lifted: false };
      rules.push(kept);
      return {
        get struck() {
          return kept.struck;
        },
        lift: () => {
          kept.lifted = true;
        },
      };
    },
    retarget: (url) => {
      chainUrl = url;
    },
    hangUp: () => server.closeIdleConnections(),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    const answers: unknown[] = [];
    const methods: string[] = [];
    requests.push(methods);
    // Handle calls one after the other, because later calls of a batch may depend on earlier ones.
    for (const asked of Array.isArray(body) ? body : [body]) {
      const { id, method, params = [] } = asked as ProxiedCall & { readonly id: unknown };
      calls.push({ method, params });
      methods.push(method);
      answers.push({ jsonrpc: "2.0", id, ...(await treat({ method, params }, 0)) });
    }
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(Array.isArray(body) ? answers : answers[0]));
  }

  async function treat(call: ProxiedCall, from: number): Promise<ProxiedReply> {
    const at = rules.findIndex((rule, index) => index >= from && applies(rule, call));
    const rule = rules[at];
    if (rule === undefined) return forward(chainUrl, call);
    rule.struck++;
    return rule.treatment(call, (changed = call) => treat(changed, at + 1));
  }
}

function applies(rule: KeptRule, call: ProxiedCall): boolean {
  if (rule.lifted || (rule.times !== undefined && rule.struck >= rule.times)) return false;
  return (rule.methods?.includes(call.method) ?? true) && (rule.when?.(call) ?? true);
}

async function forward(url: string, { method, params }: ProxiedCall): Promise<ProxiedReply> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const { id: _, ...reply } = (await response.json()) as ProxiedReply & { readonly id: unknown };
  return reply as ProxiedReply;
}
