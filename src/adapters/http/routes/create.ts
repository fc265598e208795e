import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Created, CreateRequest } from "../../../application/api.ts";
import { TRANSACTION_BYTES } from "../../../contract/calls/call.ts";
import { BATCH_ITEMS_LIMIT, CreatedTransaction } from "../../../contract/schemas/create.ts";
import { FencepostError, invalid } from "../../../domain/errors.ts";
import { unknownName } from "../../../domain/text/near-names.ts";
import { asObject, IDEMPOTENCY_KEY, idempotencyKeyOf, tooLarge } from "../exchange/json-body.ts";
import { answering, type HttpServerOptions, type RouteContext } from "../exchange/options.ts";
import { noteRefusal, problemOf } from "../exchange/problems.ts";
import { createdView } from "../exchange/views.ts";

/** Routes of creates. The create stage validates the fields of each request; only shape and size are checked here. */

const BATCH_LIMIT_BYTES = 8 * 1024 * 1024;

export function createRoutes(
  app: FastifyInstance,
  { checksum, mask }: RouteContext,
  { onRefused }: Pick<HttpServerOptions, "onRefused">,
): void {
  app.post(
    "/api/v1/tx",
    {
      bodyLimit: TRANSACTION_BYTES,
      config: { takesIn: true, metered: true },
      ...answering({ 200: CreatedTransaction, 202: CreatedTransaction }),
    },
    async (request, reply) => {
      const created = await request.api.create(withIdempotencyKey(asObject(request.body), request));
      reply.code(statusOf(created)).header("location", `/api/v1/tx/${created.txId}`);
      return createdView(created, checksum);
    },
  );

  app.post(
    "/api/v1/tx/batch",
    { bodyLimit: BATCH_LIMIT_BYTES, config: { takesIn: true, metered: true } },
    async (request) => {
      const items = batchItems(request);
      const results = await createEach(items, (sound) => request.api.createBatch(sound));
      return {
        results: results.map((result) => {
          if (!(result instanceof FencepostError))
            return { status: statusOf(result), ...createdView(result, checksum) };
          noteRefusal(onRefused, request, result);
          return problemOf(result, mask);
        }),
      };
    },
  );
}

function statusOf(created: Created) {
  return created.outcome === "created" ? 202 : 200;
}

function withIdempotencyKey(body: CreateRequest, request: FastifyRequest) {
  const key = idempotencyKeyOf(request);
  if (key === undefined) return body;
  if (body.requestId === undefined) return { ...body, requestId: key };
  if (body.requestId === key) return body;
  throw invalid(IDEMPOTENCY_KEY, "differs from requestId; give only one, or the same value in both");
}

/** An item of a batch for the create stage, or the error with which it is refused. */
type BatchItem = CreateRequest | FencepostError;

function batchItems(request: FastifyRequest): readonly BatchItem[] {
  // Refuse an Idempotency-Key header on a batch. Ignoring it silently would be worse: the caller relies on the key to
  // create each transaction only once.
  if (request.headers[IDEMPOTENCY_KEY] !== undefined) {
    throw invalid(IDEMPOTENCY_KEY, "does not apply to a batch; give each transaction its own requestId");
  }
  const { transactions, ...rest } = asObject(request.body);
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) {
    const complaint = "is not a field of a batch, which has transactions alone";
    throw unknownName({ name: unknown, path: unknown, known: ["transactions"], complaint });
  }
  if (!Array.isArray(transactions)) throw invalid("transactions", "must be an array of request bodies as for POST /tx");
  if (transactions.length > BATCH_ITEMS_LIMIT) {
    throw invalid("transactions", `has ${transactions.length} transactions; the limit is ${BATCH_ITEMS_LIMIT}`);
  }
  const mayBeTooLarge = request.bodyBytes > TRANSACTION_BYTES;
  return transactions.map((item: unknown) => batchItem(item, mayBeTooLarge));
}

function batchItem(item: unknown, mayBeTooLarge: boolean): BatchItem {
  if (typeof item !== "object" || item === null || Array.isArray(item)) return invalid("", "must be a JSON object");
  if (mayBeTooLarge && Buffer.byteLength(JSON.stringify(item)) > TRANSACTION_BYTES) {
    return tooLarge(TRANSACTION_BYTES);
  }
  return item;
}

/** Creates the valid items of a batch together, in order. Refused items keep their place in the result. */
async function createEach(
  items: readonly BatchItem[],
  createBatch: (requests: readonly CreateRequest[]) => Promise<readonly (Created | FencepostError)[]>,
): Promise<readonly (Created | FencepostError)[]> {
  const sound = items.filter((item): item is CreateRequest => !(item instanceof FencepostError));
  const answers = sound.length === 0 ? [] : await createBatch(sound);
  if (answers.length !== sound.length)
    throw new Error(`a batch of ${sound.length} create requests got ${answers.length} results`);
  const next = answers.values();
  return items.map((item) => (item instanceof FencepostError ? item : (next.next().value as Created | FencepostError)));
}
