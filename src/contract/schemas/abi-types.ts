import type {
  Abi,
  AbiParameter,
  AbiParametersToPrimitiveTypes,
  AbiStateMutability,
  ExtractAbiFunction,
  ExtractAbiFunctionNames,
} from "abitype";

/**
 * Types of the functions and arguments of an ABI, as in viem: `string` and `readonly unknown[]` if the compiler does not
 * know the ABI. They are built on abitype, not imported from viem: the package `fencepost-client` carries a copy of all
 * types that it needs, and abitype's are few.
 */

type Known<A extends readonly unknown[]> = A extends Abi ? A : Abi;

type ArgumentsFor<Inputs extends readonly AbiParameter[]> =
  AbiParametersToPrimitiveTypes<Inputs, "inputs", true> extends infer Arguments
    ? [Arguments] extends [never]
      ? readonly unknown[]
      : Arguments
    : readonly unknown[];

export type ContractFunctionName<A extends readonly unknown[], M extends AbiStateMutability> =
  ExtractAbiFunctionNames<Known<A>, M> extends infer Name extends string
    ? [Name] extends [never]
      ? string
      : Name
    : string;

export type ContractFunctionArgs<
  A extends readonly unknown[],
  M extends AbiStateMutability,
  F extends ContractFunctionName<A, M>,
> = ArgumentsFor<ExtractAbiFunction<Known<A>, F, M>["inputs"]>;

export type ContractConstructorArgs<A extends readonly unknown[]> = ArgumentsFor<
  Extract<Known<A>[number], { type: "constructor" }>["inputs"]
>;
