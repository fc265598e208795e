/** Location of one RLP item: `head` is its first byte, `start`..`end` its content. */
export interface RlpItem {
  readonly head: number;
  readonly start: number;
  readonly end: number;
  readonly isList: boolean;
}

export class MalformedRlp extends Error {}

export function readItem(bytes: Buffer, head: number): RlpItem {
  const first = bytes[head];
  if (first === undefined) throw new MalformedRlp("rlp: value size exceeds available input length");
  if (first < 0x80) return { head, start: head, end: head + 1, isList: false };
  const isList = first >= 0xc0;
  const short = first - (isList ? 0xc0 : 0x80);
  const lengthBytes = short <= 55 ? 0 : short - 55;
  if (lengthBytes > 4) throw new MalformedRlp("rlp: value size exceeds available input length");
  const start = head + 1 + lengthBytes;
  if (start > bytes.length) throw new MalformedRlp("rlp: value size exceeds available input length");
  const end = start + (lengthBytes === 0 ? short : bytes.readUIntBE(head + 1, lengthBytes));
  if (end > bytes.length) throw new MalformedRlp("rlp: value size exceeds available input length");
  return { head, start, end, isList };
}

/** The items of the list that begins at `head` and must fill the rest of `bytes`. */
export function listItems(bytes: Buffer, head: number): readonly RlpItem[] {
  const list = readItem(bytes, head);
  if (!list.isList) throw new MalformedRlp("rlp: expected List");
  if (list.end !== bytes.length) throw new MalformedRlp("rlp: input contains more than one value");
  const items: RlpItem[] = [];
  for (let at = list.start; at < list.end; ) {
    const item = readItem(bytes, at);
    items.push(item);
    at = item.end;
  }
  return items;
}
