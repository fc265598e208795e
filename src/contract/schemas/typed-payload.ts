import type { ContractConstructorArgs, ContractFunctionArgs, ContractFunctionName } from "./abi-types.ts";
import type { ReplaceOrder } from "./actions.ts";
import type { CallPayload, CreateTransaction, DeployPayload, RawPayload } from "./create.ts";
import type { KnownSignature } from "./signature.ts";

/**
 * Request types of the library and the SDK, stricter than JSON Schema. With an ABI that the compiler knows (`as
 * const`), `function` and `args` are checked against it, as viem does.
 */

/** Type of an ABI that the compiler does not know. */
export type SomeAbi = readonly unknown[];

type Writing = "nonpayable" | "payable";
export type FunctionOf<A extends SomeAbi> = ContractFunctionName<A, Writing>;

/**
 * Forbids members of the other kinds of payload: otherwise a payload with a mistake could pass as another kind that has
 * more members.
 */
type Alone<T> = T & { readonly [Name in Exclude<PayloadMember, keyof T>]?: never };
type PayloadMember = "to" | "data" | "function" | "abi" | "args" | "bytecode";

/** `value` is allowed only if the function is payable, or if the compiler does not know the ABI. */
type PayableValue<IsPayable> = IsPayable extends true
  ? Pick<RawPayload, "value">
  : {
      /** The function is not payable: it takes no value. */
      readonly value?: never;
    };

interface CallBySignature<F extends string> extends Omit<CallPayload, "abi" | "function"> {
  /** Signature such as `transfer(address,uint256)`, or an ABI in which exactly one function fits. */
  readonly function: KnownSignature<F> | readonly unknown[];
}

type OfCall = Omit<CallPayload, "abi" | "function" | "args" | "value">;

type CallByName<A extends SomeAbi, F extends FunctionOf<A>> = OfCall &
  PayableValue<F extends ContractFunctionName<A, "payable"> ? true : false> & {
    /** The contract's ABI: JSON, or human-readable lines. */
    readonly abi: A;
    /** Name of the function: one that writes. */
    readonly function: F;
    /** Arguments of the function, in order, with the types that the ABI gives. */
    readonly args: ContractFunctionArgs<A, Writing, F>;
  };

/** A call by full signature: if several functions of the ABI have the same name, the signature selects one. */
type CallByFullName<A extends SomeAbi, Name extends FunctionOf<A>, IsPayable> = OfCall &
  PayableValue<IsPayable> & {
    /** The contract's ABI: JSON, or human-readable lines. */
    readonly abi: A;
    /** Full signature of the function, if several have its name. */
    readonly function: `${Name}(${string})`;
    /** Arguments of the function, in order. */
    readonly args: CallPayload["args"];
  };

type BareDeploy = Omit<DeployPayload, "abi" | "args">;
type NonpayableConstructor = { readonly type: "constructor"; readonly stateMutability: "nonpayable" };
type OfDeploy<A extends SomeAbi> = Omit<BareDeploy, "value"> &
  PayableValue<[Extract<A[number], NonpayableConstructor>] extends [never] ? true : false>;

type DeployWith<A extends SomeAbi> = OfDeploy<A> & {
  /** The contract's ABI: JSON, or human-readable lines. */
  readonly abi: A;
  /** Arguments of the constructor, in order, with the types that the ABI gives. */
  readonly args: ContractConstructorArgs<A>;
};

/** A deployment whose constructor has no arguments, or that has no constructor. */
type DeployWithout<A extends SomeAbi> = OfDeploy<A> & {
  /** The contract's ABI, whose constructor has no arguments. */
  readonly abi: ContractConstructorArgs<A> extends readonly [unknown, ...unknown[]] ? never : A;
};

export type TypedPayload<A extends SomeAbi = SomeAbi, F extends FunctionOf<A> = FunctionOf<A>> =
  | Alone<RawPayload>
  | Alone<CallBySignature<F>>
  | Alone<CallByName<A, F>>
  | Alone<CallByFullName<A, ContractFunctionName<A, "payable">, true>>
  | Alone<CallByFullName<A, FunctionOf<A>, false>>
  | Alone<BareDeploy>
  | Alone<DeployWith<A>>
  | Alone<DeployWithout<A>>;

type With<A extends SomeAbi, F extends FunctionOf<A>> = {
  /** What to send: a transfer or encoded call, a contract call, or a deployment. */
  readonly payload: TypedPayload<A, F>;
};

/** The request body of POST /tx. */
export type TransactionIntent<A extends SomeAbi = SomeAbi, F extends FunctionOf<A> = FunctionOf<A>> = Omit<
  CreateTransaction,
  "payload" | "validUntil"
> &
  With<A, F> & {
    /** Deadline of the transaction; as text, in ISO 8601 with a UTC offset. */
    readonly validUntil?: string | Date;
  };

export type TypedReplaceOrder<A extends SomeAbi = SomeAbi, F extends FunctionOf<A> = FunctionOf<A>> = Omit<
  ReplaceOrder,
  "payload"
> &
  With<A, F>;
