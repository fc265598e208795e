/** Rows of requested signatures and of the use of rules about messages, and the statements that write them. */
import { domainOf } from "../../../domain/messages/domain-of.ts";
import type { SignatureRecord, SignatureState } from "../../../domain/messages/record.ts";
import type { MessageUse } from "../../../domain/policy/message-rules.ts";
import { withLane } from "../rows/columns.ts";
import {
  changeSignatures,
  insertSignatures,
  type MessageUseRow,
  type SignatureRow,
  writeMessageUse,
} from "../statements/signature.ts";
import type { Command } from "../statements/statement.ts";
import type { LanePlan, Plan } from "./plan.ts";

/**
 * Statements for a commit's messages. Several steps of one signature are written once: the row of a new one has its last
 * step already.
 */
export function messageCommands(plan: Plan): readonly Command[] {
  const kept = plan.of("messageKept");
  const changed = new Map<string, { from: SignatureState; record: SignatureRecord; lane: LanePlan }>();
  for (const [{ record, from }, lane] of plan.of("messageChanged")) {
    changed.set(record.signatureId, { from: changed.get(record.signatureId)?.from ?? from, record, lane });
  }
  const fresh = kept.map(([{ record }, lane]) => rowOf(changed.get(record.signatureId)?.record ?? record, lane));
  for (const [{ record }] of kept) changed.delete(record.signatureId);
  const steps = [...changed.values()].map(({ from, record, lane }) => ({ ...rowOf(record, lane), fromState: from }));
  const used = plan
    .of("messageCounted")
    .map(([{ rule, use }, lane]) => [`${lane.key} ${rule}`, useRow(rule, use, lane)] as const);
  const uses = [...new Map(used).values()];
  return [
    ...(fresh.length === 0 ? [] : [insertSignatures(fresh)]),
    ...(steps.length === 0 ? [] : [changeSignatures(steps)]),
    ...(uses.length === 0 ? [] : [writeMessageUse(uses)]),
  ];
}

function rowOf({ lane: { chainId, signer }, decision, ...record }: SignatureRecord, { row }: LanePlan) {
  const decided = { decidedAt: decision?.at, decidedBy: decision?.actor, decidedWhy: decision?.reason };
  const about = { kind: record.message.kind, domain: domainOf(record.message) };
  return { ...record, ...decided, chainId, signer, ...about, nodeId: row.nodeId, token: row.token };
}

function useRow(rule: string, { hourMs, hour, day }: MessageUse, { row: { chainId, signer } }: LanePlan) {
  const sums = { hourAmount: hour.amount, hourSignatures: hour.signatures, dayAmount: day.amount };
  return { chainId, signer, rule, useHour: new Date(hourMs), ...sums, daySignatures: day.signatures };
}

export function signatureOf({ decidedAt, decidedBy, decidedWhy, ...row }: SignatureRow): SignatureRecord {
  const { kind: _, domain: __, ...record } = withLane(row);
  const decision =
    decidedAt === null || decidedBy === null ? null : { at: decidedAt, actor: decidedBy, reason: decidedWhy ?? "" };
  return { ...record, decision };
}

export function messageUseOf(row: MessageUseRow): MessageUse {
  return {
    hourMs: row.useHour.getTime(),
    hour: { amount: row.hourAmount, signatures: row.hourSignatures },
    day: { amount: row.dayAmount, signatures: row.daySignatures },
  };
}
