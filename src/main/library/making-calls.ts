import { createdView } from "../../adapters/http/exchange/views.ts";
import type { Created } from "../../application/api.ts";
import { withRequestId } from "../../client/calls.ts";
import type { CallOptions } from "../../client/deadline.ts";
import { FencepostError as FaceError, ofRequest } from "../../client/error-classes.ts";
import type { FencepostFace } from "../../client/face.ts";
import type { SentTransaction } from "../../client/sent-transaction.ts";
import type { CreatedTransaction } from "../../contract/schemas/create.ts";
import { FencepostError } from "../../domain/errors.ts";
import type { Asking, Inside } from "./asking.ts";

interface Named {
  readonly requestId: string;
}

/** A caller who gave no request id needs the one that was made. */
function of(asked: Named, error: unknown): unknown {
  return error instanceof FaceError ? ofRequest(error, asked?.requestId) : error;
}

/** Intents on their way in. */
export function sendingCalls<SendOptions extends CallOptions>(
  { api, checksum, take }: Inside<SendOptions>,
  asking: Asking,
  handle: (created: CreatedTransaction) => SentTransaction,
) {
  const sent = (created: Created) => handle(createdView(created, checksum));
  const sendOne = async (intent: Named, options: SendOptions | undefined): Promise<SentTransaction> => {
    try {
      return sent(await asking.ask(options, () => take(intent, options ?? ({} as SendOptions))));
    } catch (error) {
      throw of(intent, error);
    }
  };
  /** One after the other: in a transaction of the caller's their order is kept. */
  const oneByOne = async (intents: readonly Named[], options: SendOptions) => {
    const results: (SentTransaction | FaceError)[] = [];
    for (const intent of intents) results.push(await sendOne(intent, options).catch(orError));
    return results;
  };
  /** In one go, so that their nonces are in order; what another node acts for goes its own way. */
  const atOnce = async (intents: readonly Named[], options: SendOptions | undefined) => {
    const fates = await asking.ask(options, () => api.createBatch(intents));
    return Promise.all(
      fates.map((fate, at): Promise<SentTransaction | FaceError> | SentTransaction | FaceError => {
        const intent = intents[at] as Named;
        if (!(fate instanceof FencepostError)) return sent(fate);
        if (fate.code === "NOT_LEADER") return sendOne(intent, options).catch(orError);
        return of(intent, asking.told(fate)) as FaceError;
      }),
    );
  };
  return {
    send: (intent, options) => sendOne(withRequestId(intent), options),
    sendMany: (intents, options) => {
      const named = intents.map(withRequestId);
      return options !== undefined && "client" in options ? oneByOne(named, options) : atOnce(named, options);
    },
  } satisfies Partial<FencepostFace<SendOptions>>;
}

/** What is not the intent's own failure fails them all: a connection of the caller's that broke, say. */
function orError(error: unknown): FaceError {
  if (error instanceof FaceError) return error;
  throw error;
}
