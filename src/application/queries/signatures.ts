/** Requested signatures for audit: what was shown, who asked, and the rule that allowed it. */
import { defined } from "../../domain/defined.ts";
import { ANYBODY, type Limits } from "../../domain/keys/principal.ts";
import { domainOf } from "../../domain/messages/domain-of.ts";
import type { PersonalMessage, TypedData } from "../../domain/messages/message.ts";
import { personalText } from "../../domain/messages/personal-text.ts";
import type { SignatureRecord } from "../../domain/messages/record.ts";
import type { SignaturesQuery, SignatureView } from "../api.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { given, UUID } from "../requests/fields.ts";
import { parseSigner } from "../requests/normalise.ts";
import { notFound, openCursor, sealCursor } from "./transactions.ts";

type SignaturePorts = Pick<CallPorts, "codec" | "store" | "retention">;

const DEFAULT_PAGE = 50;

export async function signature(ports: SignaturePorts, signatureId: string): Promise<SignatureView> {
  return signatureView(await signatureRecord(ports, signatureId));
}

export async function signatureRecord(ports: SignaturePorts, signatureId: string): Promise<SignatureRecord> {
  const record = UUID.test(signatureId) ? await ports.store.signature(signatureId.toLowerCase()) : null;
  if (record === null) throw notFound(ports, `there is no signature ${signatureId}`);
  return record;
}

export async function signatures(
  ports: SignaturePorts,
  query: SignaturesQuery = {},
  limits: Limits = ANYBODY,
): Promise<{ readonly items: readonly SignatureView[]; readonly next: string | null }> {
  const { chainId, state, key, domain, limit = DEFAULT_PAGE } = query;
  const signer = given(query.signer, (value) => parseSigner(ports.codec, value, "signer"));
  const after = given(query.after, openCursor);
  const filter = defined({ chainId, state, owner: key, domain, signer, after });
  const records = await ports.store.signatures({ ...filter, within: limits, limit: limit + 1 });
  const page = records.slice(0, limit);
  const last = page.at(-1);
  const next = records.length > limit && last !== undefined ? sealCursor(last.signatureId) : null;
  return { items: page.map(signatureView), next };
}

/**
 * The signature itself is left out: whoever has it may use it, and reading needs fewer rights than signing. Its asker
 * gets it by repeating the request.
 */
export function signatureView({ signature: _, message, ...record }: SignatureRecord): SignatureView {
  const about = { kind: message.kind, domain: domainOf(message) };
  return { ...record, ...about, ...(message.kind === "personal" ? shownText(message) : shownData(message)) };
}

function shownText({ bytes }: PersonalMessage) {
  const read = personalText(bytes);
  return { message: "text" in read ? read.text : bytes, typedData: null };
}

function shownData({ domain, types, primaryType, value }: TypedData) {
  return { message: null, typedData: { domain, types, primaryType, message: value } };
}
