/**
 * Types of the calls that read, by their path: parameters, query and answer. A caller that writes paths itself, like
 * the dashboard's page, is checked against the declarations.
 */
import type { Static, TObject, TSchema } from "typebox";
import type { DeclaredCall } from "./index.ts";

type PathOf<At> = At extends `get /api/v1${infer Path}` ? Path : never;

/** Path of a call that reads, in OpenAPI's notation, without `/api/v1`. */
export type ReadPath = PathOf<DeclaredCall["at"]>;

type CallAt<P extends ReadPath> = Extract<DeclaredCall, { readonly at: `get /api/v1${P}` }>;

export type AnswerAt<P extends ReadPath> =
  CallAt<P> extends { readonly answers: { readonly 200: { readonly schema: infer S extends TSchema } } }
    ? Static<S>
    : never;

export type QueryAt<P extends ReadPath> =
  CallAt<P> extends { readonly query: infer Q extends TObject } ? Partial<Static<Q>> : Record<never, never>;

/** Parameters in a path: `{ txId: string }` of `/tx/{txId}`. */
export type ParametersOf<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? { readonly [Key in Name]: string } & ParametersOf<Rest>
  : unknown;
