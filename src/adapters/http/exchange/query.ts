import type { Static, TObject } from "typebox";
import { invalid } from "../../../domain/errors.ts";
import { unknownName } from "../../../domain/text/near-names.ts";

/** The few members of JSON Schema that schemas of query parameters use. */
interface ParameterSchema {
  readonly type: "string" | "integer" | "number";
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
}

type Value = string | number | boolean;
type Read = (path: string, text: string) => Value;

const INTEGER = /^(0|[1-9][0-9]{0,15})$/;
const DECIMAL = /^[0-9]{1,10}(\.[0-9]{1,10})?$/;
const CONTROL_CHARACTER = /\p{Cc}/u;

/**
 * Makes a reader that parses a query string by its schema. Everything arrives as text, and a general validator that
 * converts it would also accept "1e3", "0x10" and an empty string as numbers. Unknown and repeated parameters are
 * refused by name.
 */
export function queryReader<T extends TObject>(schema: T): (query: unknown) => Static<T> {
  const parameters = Object.entries(schema.properties as object) as [string, ParameterSchema][];
  const readers = new Map(
    parameters.map(([name, each]) => [name, each.type === "string" ? textReader(each) : numberReader(each)]),
  );
  const required: readonly string[] = schema.required ?? [];
  return (query) => {
    const given = query as Readonly<Record<string, string | readonly string[]>>;
    const values: Record<string, Value> = {};
    for (const [name, text] of Object.entries(given)) {
      const read = readers.get(name);
      if (read === undefined)
        throw unknownName({
          name,
          path: name,
          known: [...readers.keys()],
          complaint: "is not a parameter of this route",
        });
      if (typeof text !== "string") throw invalid(name, "is given more than once");
      values[name] = read(name, text);
    }
    for (const name of required)
      if (values[name] === undefined) throw invalid(name, "is required: give it in the query string");
    return values as Static<T>;
  };
}

function numberReader(parameter: ParameterSchema): Read {
  const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER } = parameter;
  const form = parameter.type === "integer" ? INTEGER : DECIMAL;
  const kind = parameter.type === "integer" ? "an integer" : "a number";
  return (path, text) => {
    const value = Number(text);
    if (form.test(text) && value >= minimum && value <= maximum) return value;
    throw invalid(path, `must be ${kind} from ${minimum} to ${maximum}`);
  };
}

function textReader(parameter: ParameterSchema): Read {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, enum: words } = parameter;
  const pattern = parameter.pattern === undefined ? null : new RegExp(parameter.pattern);
  const [example] = parameter.examples ?? [];
  const such = example === undefined ? "" : `, such as ${example}`;
  const isFlag = words?.every((word) => word === "true" || word === "false") === true;
  return (path, text) => {
    if (text.length < minLength) throw invalid(path, "is empty");
    // Count characters as JSON Schema does: an emoji is one character. The request id in a body is counted the same
    // way.
    if ([...text].length > maxLength) throw invalid(path, `is longer than ${maxLength} characters`);
    if (words !== undefined && !words.includes(text)) throw invalid(path, `must be one of ${words.join(", ")}`);
    if (pattern !== null && !pattern.test(text)) throw invalid(path, `must match ${parameter.pattern}${such}`);
    if (CONTROL_CHARACTER.test(text)) throw invalid(path, "must not contain control characters");
    return isFlag ? text === "true" : text;
  };
}
