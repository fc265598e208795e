/**
 * Checks the types in a function's signature when it is compiled: `transfer(adress,uint256)` has no such function. Only
 * words are checked here; the node parses the whole signature.
 */

type Eights = "8" | "16" | "24" | "32" | "40" | "48" | "56" | "64" | "72" | "80" | "88" | "96" | "104" | "112" | "120";
type MoreEights = "128" | "136" | "144" | "152" | "160" | "168" | "176" | "184" | "192" | "200" | "208" | "216";
type Bits = "" | Eights | MoreEights | "224" | "232" | "240" | "248" | "256";
type Digit = "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9";
type Bytes = "" | Exclude<Digit, "0"> | `${"1" | "2"}${Digit}` | "30" | "31" | "32";
type Elementary = "address" | "bool" | "string" | `${"int" | "uint"}${Bits}` | `bytes${Bytes}`;

/** The signature itself if its types exist and it writes; otherwise a type that no signature has. */
export type KnownSignature<S extends string> = string extends S
  ? string
  : S extends `${string}(${infer Parameters}`
    ? Mistake<Parameters> extends never
      ? S
      : Mistake<Parameters>
    : "a signature such as transfer(address,uint256)";

/** Each mistake of a parameter list: the texts between commas and parentheses that do not begin with a type. */
type Mistake<S extends string> = S extends `${infer Chunk})${infer Rest}` ? MistakeIn<Chunk> | AfterTuple<Rest> : never;

/** Text after a closing parenthesis begins with `[]`, a parameter's name or the function's modifiers. */
type AfterTuple<S extends string> = S extends `${infer Chunk})${infer Rest}`
  ? Reads<Chunk> | (Chunk extends `${string},${infer Others}` ? MistakeIn<Others> : never) | AfterTuple<Rest>
  : Reads<S>;

type Reads<S extends string> = S extends `${string}${" view" | " pure"}${string}`
  ? "a function that writes, not view or pure"
  : never;

type MistakeIn<S extends string> = S extends `${infer Parameter},${infer Others}`
  ? NoType<Parameter> | MistakeIn<Others>
  : NoType<S>;

type NoType<S extends string> = S extends "" | "tuple"
  ? never
  : S extends ` ${infer Rest}` | `(${infer Rest}` | `tuple(${infer Rest}`
    ? NoType<Rest>
    : S extends `${infer Word} ${string}`
      ? NoElementary<Word>
      : NoElementary<S>;

type NoElementary<S extends string> = S extends Elementary | `${Elementary}[${string}` ? never : `${S} is no type`;
